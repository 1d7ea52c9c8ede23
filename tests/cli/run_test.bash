# run_test.bash NAME: runs NAME.sh in its own empty folder.
set -euo pipefail
SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf "$WORK"
mkdir -p "$WORK"
cd "$WORK"
# shellcheck source=expect.bash
source "$SOURCE/expect.bash"
trap 'echo "ended early at: $BASH_COMMAND"' ERR
# shellcheck disable=SC1090
source "$SOURCE/$1.sh"
trap - ERR
finish
