"""Transports: how a host's messages travel. One file a kind behind the contract of `base.py`."""
