# Apache's own library reads an Arrow file as the table of spans, where it is: STAGEWRIGHT_NODE_MODULES names the folder of `npm install apache-arrow`.
# shellcheck shell=bash
run stagewright simulate -s zb-h1 -p 4 -m 8 -o z.stagewright
run stagewright export z.stagewright -o z.arrow --json
expect_code 0
expect_json 96 counts spans
expect_that 'the mark of the format at both ends' [ "$(head -c 6 z.arrow)$(tail -c 6 z.arrow)" = ARROW1ARROW1 ]
run stagewright export z.stagewright --format spans -o z.csv
expect_code 0
modules=${STAGEWRIGHT_NODE_MODULES:-}
if command -v node >/dev/null && [ -d "$modules/apache-arrow" ]; then
    cat >read.cjs <<'JS'
const { tableFromIPC } = require('apache-arrow');
const table = tableFromIPC(require('node:fs').readFileSync(process.argv[2]));
const names = table.schema.fields.map(field => field.name);
console.log(names.join(','));
for (const row of table) console.log(names.map(name => row[name] ?? '').join(','));
JS
    run env NODE_PATH="$modules" node read.cjs z.arrow
    expect_code 0
    expect_same "$out" "$(cat z.csv)"
else
    echo "not read by Apache's library: STAGEWRIGHT_NODE_MODULES has no apache-arrow"
fi
