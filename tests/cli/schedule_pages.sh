# docs/schedules.md is what the library says now, and each schedule has its picture.
# shellcheck shell=bash
docs=$SOURCE/../../docs
run stagewright schedules --markdown
expect_code 0
expect_out '^# Schedules'
expect_that "docs/schedules.md is up to date; docs/make_schedule_pages.sh rewrites it and the pictures" cmp "$docs/schedules.md" out.txt
for name in $(grep -o '(schedules/[^)]*)' out.txt | sort -u | tr -d '()'); do
    expect_that "docs/$name is there" [ -s "$docs/$name" ]
done
expect_that "no picture is left over" [ "$(ls "$docs/schedules" | wc -l)" = "$(grep -c '^!' out.txt)" ]
run stagewright schedules gpipe --markdown
expect_code 2
