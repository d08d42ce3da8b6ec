"""mrc_agent."""
