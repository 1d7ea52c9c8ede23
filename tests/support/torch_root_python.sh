#!/bin/sh
# The python3 of a root that holds PyTorch (STAGEWRIGHT_TEST_TORCH_ROOT), with this folder and the sources at their own paths in it.
# Mounts are in a namespace of their own and go with the process. For --python.
root=${STAGEWRIGHT_TEST_TORCH_ROOT:?names a root that holds PyTorch}
exec unshare --mount --propagation private sh -c '
    root=$1 here=$2; shift 2
    mkdir -p "$root$here" && mount --rbind "$here" "$root$here" && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount --bind /etc/hosts "$root/etc/hosts" || exit 126
    exec chroot "$root" /usr/bin/env -C "$here" python3 "$@"' sh "$root" "$(pwd)" "$@"
