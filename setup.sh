#!/usr/bin/env bash
# Makes this machine ready: system packages, then the Python environment .venv. Can be run again at any time; it does
# only what is missing and is silent when nothing is. run.py calls it, so nobody has to.
#
#   sudo ./setup.sh                everything
#   ./setup.sh --python-only       .venv alone, without root: enough for validate, plan, path, report, list and show
#   sudo ./setup.sh --with-ryu     also the second controller backend (.venv-ryu), for `controller: ryu`
#
# For Debian 12 and 13, Ubuntu 22.04 and 24.04. Exit codes: 0 ready, 3 something is missing (the message says what).
set -euo pipefail
umask 022
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export PYTHONNOUSERSITE=1 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH PYTHONHOME

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd -P)
venv=$root/.venv
system_python=/usr/bin/python3 # the one that the distribution's Mininet is installed for
policy=/usr/sbin/policy-rc.d   # Debian's hook that decides whether a package may start its service

say() { printf 'setup: %s\n' "$*"; }
die() {
    printf 'setup: %s\n' "$*" >&2
    exit 3
}

extent=full ryu=no
for argument in "$@"; do
    case $argument in
        --python-only) extent=python-only ;;
        --with-ryu) ryu=yes ;;
        -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 0 ;;
        *) die "unknown option $argument (see ./setup.sh --help)" ;;
    esac
done

# The same two facts as wanted_stamp() in run.py: the recipe, and the Python that .venv is made from.
recipe_hash() { cat "$root"/{setup.sh,requirements.txt,constraints.txt} | sha256sum | cut -d ' ' -f 1; }
stamp() { printf '%s %s %s\n' "$(recipe_hash)" "$(readlink -m $system_python)" "$1"; }
stamped() { [[ -x $venv/bin/python && -f $venv/.setup-stamp && $(<"$venv/.setup-stamp") == "$(stamp "$1")" ]]; }

# --- system packages -------------------------------------------------------------------------------------------------

have() { command -v "$1" >/dev/null; }
# Whether all of Mininet can be imported is for .venv to say: 2.3.0 wants distutils, which Python 3.12 no longer has and
# setuptools in .venv brings.
have_mininet() { have mnexec && $system_python -c 'import mininet' 2>/dev/null; }
have_venv() { $system_python -c 'import ensurepip, venv' 2>/dev/null; }

# Asked by what they give, not by package name: a Mininet or OVS built from source is as good, and left alone.
missing_packages() {
    [[ -x $system_python ]] || echo python3
    have_venv || echo python3-venv
    [[ $extent == full ]] || return 0
    have_mininet || echo mininet
    have ovs-vswitchd && have ovsdb-server && have ovs-vsctl || echo openvswitch-switch
    have ip && have tc || echo iproute2
    have ifconfig || echo net-tools
    have ethtool || echo ethtool
    have tcpdump || echo tcpdump
    have ping || echo iputils-ping
    have modprobe || echo kmod
    have sysctl && have pkill || echo procps
    have unshare && have nsenter && have mount || echo util-linux mount
}

# Experiments start an OVS of their own in namespaces of their own. Installing the package would start the system's as
# well, so for that moment its start is refused; an OVS that is already there is not touched in any way.
refuse_ovs_start() {
    [[ -e $policy ]] && return 0
    printf '#!/bin/sh\n# made by mrc-testbed setup.sh for the time of one installation\n' >$policy
    # shellcheck disable=SC2016
    printf 'case "$1" in openvswitch-*|ovs-*|ovsdb-*) exit 101 ;; esac\nexit 0\n' >>$policy
    chmod 755 $policy
}
allow_ovs_start() {
    if grep -qs 'made by mrc-testbed' $policy; then rm -f $policy; fi
}

# Silent unless it fails. The output goes to a file and the lock (9) is closed, so that no service that a package starts
# can hold either of them.
apt_get() {
    local log status=0
    log=$(mktemp)
    DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l \
        apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 9>&- </dev/null || status=$?
    ((status == 0)) || cat "$log" >&2
    rm -f "$log"
    return "$status"
}

install_packages() {
    local missing ovs_is_new=no
    read -r -a missing <<<"$(missing_packages | xargs)"
    ((${#missing[@]})) || return 0
    if ! have apt-get; then
        die "missing: ${missing[*]}, and no apt-get here to install it; ./setup.sh --python-only makes what needs no network"
    fi
    ((EUID == 0)) || die "system packages are missing (${missing[*]}); type: sudo ./setup.sh"
    say "installing system packages: ${missing[*]}"
    [[ " ${missing[*]} " != *" openvswitch-switch "* ]] || ovs_is_new=yes
    if ! apt_get install --dry-run --no-install-recommends "${missing[@]}" 2>/dev/null; then
        say "fetching the package lists"
        apt_get update || say "some package lists could not be fetched; trying with those at hand"
    fi
    trap allow_ovs_start EXIT
    refuse_ovs_start
    # A list that is out of date names versions that the archive no longer has: fetch the lists and try once more.
    apt_get install -y --no-install-recommends "${missing[@]}" ||
        { apt_get update && apt_get install -y --no-install-recommends "${missing[@]}"; } ||
        die "apt-get could not install ${missing[*]} (its message is above; on Ubuntu they are in 'universe')"
    allow_ovs_start
    trap - EXIT
    if [[ $ovs_is_new == yes ]] && have systemctl; then
        systemctl disable --quiet openvswitch-switch.service 2>/dev/null || true
        say "the system's own Open vSwitch service stays off (systemctl enable --now openvswitch-switch turns it on)"
    fi
    read -r -a missing <<<"$(missing_packages | xargs)"
    ((${#missing[@]} == 0)) || die "installed, but still not usable: ${missing[*]}"
}

# --- the Python environment ------------------------------------------------------------------------------------------

# Whether .venv works and was made from the system's Python as it is today (a release upgrade changes its version).
venv_is_usable() {
    [[ -x $venv/bin/python ]] && grep -qsi '^include-system-site-packages *= *true' "$venv/pyvenv.cfg" &&
        [[ $("$venv/bin/python" -c "$which_python" 2>/dev/null) == "$($system_python -c "$which_python")" ]] &&
        "$venv/bin/python" -m pip --version >/dev/null 2>&1
}
which_python='import sys; print(sys.base_prefix, sys.version_info[:2])'

make_venv() {
    local version
    version=$($system_python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    case $version in
        3.10 | 3.11 | 3.12 | 3.13) ;;
        *) die "$system_python is Python $version; 3.10 to 3.13 are supported" ;;
    esac
    if ! venv_is_usable; then
        say "making .venv from $system_python (Python $version)"
        $system_python -m venv --clear --system-site-packages "$venv" || die "could not make $venv"
    fi
    say "installing Python packages into .venv (about 200 MB the first time)"
    "$venv/bin/python" -m pip install -qq --no-input --only-binary=:all: \
        -r "$root/requirements.txt" -c "$root/constraints.txt" ||
        die "pip failed (its message is above; behind a proxy: sudo --preserve-env=https_proxy ./setup.sh)"
    local modules="numpy, scipy, pandas, pyarrow, matplotlib, networkx, pydantic, typer, os_ken"
    [[ $extent != full ]] || modules+=", mininet.net"
    "$venv/bin/python" -c "import $modules" || die ".venv is there but cannot import all of: $modules"
}

# Under sudo: what was made belongs to who called.
give_to_caller() {
    ((EUID == 0)) && [[ -n ${SUDO_UID:-} && -e $1 ]] || return 0
    chown -R --no-dereference "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$1"
}

# --- all of it, one at a time ----------------------------------------------------------------------------------------

have flock || die "missing: flock (package util-linux)"
exec 9<"$root/setup.sh" # the script itself is the lock's file, so no lock file stays behind
if ! flock -n 9; then
    say "another set-up is running; waiting for it"
    flock -w 1800 9 || die "the other set-up did not end within 30 minutes"
fi

if ((EUID == 0)); then allow_ovs_start; fi # of a set-up that was killed
install_packages
# What a full set-up made also serves --python-only.
if ! stamped "$extent" && ! stamped full; then
    make_venv
    stamp "$extent" >"$venv/.setup-stamp"
    give_to_caller "$venv"
    say "ready"
fi

if [[ $ryu == yes && -f $root/controller/install_ryu.sh ]]; then
    bash "$root/controller/install_ryu.sh" 9>&- || say "Ryu could not be installed; os-ken, the default, does not need it"
    give_to_caller "$root/.venv-ryu"
fi
