# Real daemons for tests: sshd, munge and Slurm. Their packages and the libraries that are missing here are fetched with apt-get download and unpacked
# below $DAEMONS, never installed; they run as the test's own processes, on ports and sockets of their own, and end with it.
# shellcheck shell=bash
#   daemons_fetch PACKAGE… || skip…   prints why it can't
#   sshd_start                         a host "test" for $SSH; sshd_stop, sshd_cut
#   slurm_start                        one node; slurm_stop
: "${DAEMONS:=$PWD/daemons}"
daemon_pids=()

# The packages unpacked in $DAEMONS/root; "": they are. Else one line that says why not.
daemons_fetch() {
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo 'apt-get and dpkg are not there'; return 1; }
    mkdir -p "$DAEMONS/debs" "$DAEMONS/root"
    local wanted=() package
    for package in "$@"; do
        [ -e "$DAEMONS/debs/.$package" ] || wanted+=("$package")
    done
    [ ${#wanted[@]} -eq 0 ] || (
        exec 9>"$DAEMONS/debs/.lock"
        flock 9
        cd "$DAEMONS/debs" || exit 1
        for package in "${wanted[@]}"; do
            [ -e ".$package" ] && continue
            timeout 120 apt-get download "$package" >"$package.log" 2>&1 || { echo "apt-get download $package: $(tail -n 1 "$package.log")"; exit 1; }
            dpkg -x "$package"_*.deb "$DAEMONS/root" || { echo "dpkg can't unpack $package"; exit 1; }
            : >".$package"
        done
    )
}

# Runs a program of the unpacked packages with their libraries.
daemon_libraries() { printf '%s' "$DAEMONS/root/usr/lib/x86_64-linux-gnu:$DAEMONS/root/lib/x86_64-linux-gnu:$DAEMONS/root/usr/lib/x86_64-linux-gnu/slurm-wlm${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; }

# "" or what is missing of a program's libraries
daemon_lacks() { LD_LIBRARY_PATH=$(daemon_libraries) ldd "$1" 2>/dev/null | awk '/not found/ { print $1 }' | sort -u | tr '\n' ' '; }

free_port() {
    local port
    for port in $(shuf -i 20000-29999 -n 50); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}

# sshd on the loopback address with keys made for the test. $SSH_FOLDER has the keys, configuration and log; STAGEWRIGHT_SSH is a program that reads
# that configuration instead of the user's.
sshd_start() {
    SSH_FOLDER=$PWD/ssh
    SSH_PORT=$(free_port)
    rm -rf "$SSH_FOLDER"
    mkdir -p "$SSH_FOLDER" "$SSH_FOLDER/home"
    chmod 700 "$SSH_FOLDER"
    ssh-keygen -q -t ed25519 -N '' -f "$SSH_FOLDER/host_key"
    ssh-keygen -q -t ed25519 -N '' -f "$SSH_FOLDER/user_key"
    cp "$SSH_FOLDER/user_key.pub" "$SSH_FOLDER/authorized_keys"
    chmod 600 "$SSH_FOLDER/authorized_keys"
    printf '[127.0.0.1]:%s %s\n' "$SSH_PORT" "$(cut -d' ' -f1,2 "$SSH_FOLDER/host_key.pub")" >"$SSH_FOLDER/known_hosts"
    cat >"$SSH_FOLDER/sshd_config" <<END
Port $SSH_PORT
ListenAddress 127.0.0.1
HostKey $SSH_FOLDER/host_key
AuthorizedKeysFile $SSH_FOLDER/authorized_keys
PidFile $SSH_FOLDER/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
LogLevel ERROR
END
    cat >"$SSH_FOLDER/config" <<END
Host test
    HostName 127.0.0.1
    Port $SSH_PORT
    User $(id -un)
    IdentityFile $SSH_FOLDER/user_key
    IdentitiesOnly yes
    UserKnownHostsFile $SSH_FOLDER/known_hosts
    StrictHostKeyChecking yes
Host stranger
    HostName 127.0.0.1
    Port $SSH_PORT
    IdentityFile $SSH_FOLDER/user_key
    UserKnownHostsFile /dev/null
    StrictHostKeyChecking yes
Host nokey
    HostName 127.0.0.1
    Port $SSH_PORT
    IdentityFile $SSH_FOLDER/host_key
    IdentitiesOnly yes
    UserKnownHostsFile $SSH_FOLDER/known_hosts
END
    printf '#!/bin/sh\nexec ssh -F %s "$@"\n' "$SSH_FOLDER/config" >"$SSH_FOLDER/ssh"
    chmod +x "$SSH_FOLDER/ssh"
    export STAGEWRIGHT_SSH=$SSH_FOLDER/ssh
    # root's sshd wants a user and a folder of its own: it has them in a mount namespace, the system's stay as they are
    local apart=()
    if [ "$(id -u)" = 0 ]; then
        { cat /etc/passwd; grep -q '^sshd:' /etc/passwd || echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin'; } >"$SSH_FOLDER/passwd"
        # shellcheck disable=SC2016
        apart=(unshare --mount sh -c 'mount --bind "$1/passwd" /etc/passwd && mount -t tmpfs tmpfs /run && mkdir /run/sshd && shift && exec "$@"' sh "$SSH_FOLDER")
        unshare --mount true 2>/dev/null || { echo 'as root, sshd needs mount namespaces'; return 1; }
    fi
    LD_LIBRARY_PATH=$(daemon_libraries) "${apart[@]}" "$DAEMONS/root/usr/sbin/sshd" -D -e -f "$SSH_FOLDER/sshd_config" 2>>"$SSH_FOLDER/sshd.log" &
    SSHD_PID=$!
    daemon_pids+=("$SSHD_PID")
    local i
    for ((i = 0; i < 50; ++i)); do
        if "$STAGEWRIGHT_SSH" -o BatchMode=yes test true 2>"$SSH_FOLDER/first.log"; then return 0; fi
        sleep 0.1
    done
    echo "sshd does not answer: $(cat "$SSH_FOLDER/first.log" "$SSH_FOLDER/sshd.log")"
    return 1
}

# Ends every connection to it that is open; returns 1 where there was none.
sshd_cut() {
    local pid cut=1
    for pid in $(pgrep -P "$SSHD_PID"); do kill -9 "$pid" 2>/dev/null && cut=0; done
    return $cut
}

daemons_stop() {
    local pid
    for pid in "${daemon_pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${daemon_pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    daemon_pids=()
}
