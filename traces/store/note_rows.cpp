// The tables note, bookmark and saved_query of the run file.
#include "traces/store/note_rows.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "traces/store/run_reader.h"
#include "traces/store/run_store.h"

namespace stagewright {
namespace {

constexpr std::string_view noteColumns =
    "note, text, anchor, step, rank, last_rank, op, occurrence, begin_ns, end_ns, created_unix_ms, run";

Result<void> insertNote(Database& database, std::int64_t run, std::int64_t number, const Note& note)
{
    STAGEWRIGHT_TRY(
        auto row,
        database.prepare("INSERT INTO note(note, text, anchor, step, rank, last_rank, op, occurrence, begin_ns, "
                         "end_ns, created_unix_ms, run) "
                         "VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"));
    row.bind(number)
        .bind(std::string_view(note.text))
        .bind(toText(note.anchor))
        .bind(std::int64_t(note.step))
        .bind(std::int64_t(note.rank));
    row.bind(std::int64_t(note.lastRank))
        .bind(std::string_view(note.op))
        .bind(std::int64_t(note.occurrence))
        .bind(note.begin)
        .bind(note.end);
    row.bind(note.createdUnixMs).bind(run);
    return database.run(row);
}

Result<bool> hasTable(Database& database, std::string_view name)
{
    STAGEWRIGHT_TRY(auto row, database.prepare("SELECT 1 FROM main.sqlite_schema WHERE type='table' AND name=?"));
    row.bind(name);
    return database.step(row);
}

} // namespace

std::string allNotes() { return fmt::format("SELECT run, {} FROM note ORDER BY run, note", noteColumns); }

Note noteOf(const Statement& row, int column)
{
    Note note;
    note.id = row.integer(column);
    note.text = row.text(column + 1);
    note.anchor = row.text(column + 2) == toText(NoteAnchor::Range) ? NoteAnchor::Range : NoteAnchor::Op;
    note.step = row.smallInteger(column + 3);
    note.rank = row.smallInteger(column + 4);
    note.lastRank = row.smallInteger(column + 5);
    note.op = row.text(column + 6);
    note.occurrence = row.smallInteger(column + 7);
    note.begin = row.integer(column + 8);
    note.end = std::max(note.begin, row.integer(column + 9));
    note.createdUnixMs = row.integer(column + 10);
    return note;
}

Result<bool> hasNotes(Database& database) { return hasTable(database, "note"); }

Result<std::vector<Note>> readNotes(RunStore& store, std::int64_t run, bool carried)
{
    std::vector<Note> notes;
    STAGEWRIGHT_TRY(const auto there, hasNotes(*store.database));
    if (!there) return notes;
    STAGEWRIGHT_TRY(auto own,
                    store.database->prepare(fmt::format("SELECT {} FROM note WHERE run=? ORDER BY note", noteColumns)));
    own.bind(run);
    for (;;) {
        STAGEWRIGHT_TRY(const auto row, store.database->step(own));
        if (!row) break;
        notes.push_back(noteOf(own, 0));
    }
    if (!carried) return notes;
    STAGEWRIGHT_TRY(auto others,
                    store.database->prepare(fmt::format("SELECT {} FROM note WHERE anchor='op' AND run IN (SELECT b.id "
                                                        "FROM run AS a JOIN run AS b ON b.schedule=a.schedule "
                                                        "WHERE a.id=? AND b.id<>a.id) ORDER BY run, note",
                                                        noteColumns)));
    others.bind(run);
    for (;;) {
        STAGEWRIGHT_TRY(const auto row, store.database->step(others));
        if (!row) return notes;
        Note note = noteOf(others, 0);
        note.fromRun = others.integer(11);
        const bool known = std::any_of(notes.begin(), notes.end(), [&](const Note& one) {
            return one.anchor == NoteAnchor::Op && one.text == note.text && one.op == note.op &&
                   one.rank == note.rank && one.step == note.step && one.occurrence == note.occurrence;
        });
        if (!known) notes.push_back(std::move(note));
    }
}

Result<void> writeNotes(Database& database, std::int64_t run, const std::vector<Note>& notes)
{
    STAGEWRIGHT_TRY(auto old, database.prepare("DELETE FROM note WHERE run=?"));
    old.bind(run);
    if (auto done = database.run(old); !done) return done;
    std::int64_t highest = 0;
    for (const Note& note : notes) highest = std::max(highest, note.fromRun == 0 ? note.id : 0);
    for (const Note& note : notes) {
        if (note.fromRun != 0) continue;
        if (auto done = insertNote(database, run, note.id > 0 ? note.id : ++highest, note); !done) return done;
    }
    return {};
}

Result<std::vector<Bookmark>> readBookmarks(RunStore& store)
{
    std::vector<Bookmark> bookmarks;
    STAGEWRIGHT_TRY(const auto there, hasTable(*store.database, "bookmark"));
    if (!there) return bookmarks;
    STAGEWRIGHT_TRY(
        auto rows,
        store.database->prepare(
            "SELECT slot, run, step, begin_ns, end_ns, rank, op, occurrence FROM bookmark ORDER BY slot, run"));
    for (;;) {
        STAGEWRIGHT_TRY(const auto row, store.database->step(rows));
        if (!row) return bookmarks;
        Bookmark bookmark{rows.smallInteger(0), rows.integer(1), rows.smallInteger(2),
                          rows.integer(3),      rows.integer(4), std::nullopt};
        if (bookmark.slot < 1 || bookmark.slot > 9) continue;
        if (!bookmarks.empty() && bookmarks.back().slot == bookmark.slot) continue;
        if (!rows.isNull(6)) {
            Note anchor;
            anchor.step = bookmark.step;
            anchor.rank = rows.smallInteger(5);
            anchor.op = rows.text(6);
            anchor.occurrence = rows.smallInteger(7);
            bookmark.selection = anchor;
        }
        bookmarks.push_back(bookmark);
    }
}

Result<void> writeBookmark(RunStore& store, const Bookmark& bookmark)
{
    if (bookmark.slot < 1 || bookmark.slot > 9)
        return fail(ErrorCode::Usage, fmt::format("bookmark {}: must be 1 to 9", bookmark.slot),
                    "choose a number from 1 to 9");
    STAGEWRIGHT_CHECK(readRunInfo(store, bookmark.run));
    Database& database = *store.database;
    STAGEWRIGHT_TRY(auto old, database.prepare("DELETE FROM bookmark WHERE slot=?"));
    old.bind(std::int64_t(bookmark.slot));
    if (auto done = database.run(old); !done) return done;
    STAGEWRIGHT_TRY(
        auto row,
        database.prepare(
            "INSERT INTO bookmark(run, slot, step, begin_ns, end_ns, rank, op, occurrence) VALUES(?,?,?,?,?,?,?,?)"));
    row.bind(bookmark.run)
        .bind(std::int64_t(bookmark.slot))
        .bind(std::int64_t(bookmark.step))
        .bind(bookmark.begin)
        .bind(bookmark.end);
    if (bookmark.selection)
        row.bind(std::int64_t(bookmark.selection->rank))
            .bind(std::string_view(bookmark.selection->op))
            .bind(std::int64_t(bookmark.selection->occurrence));
    else
        row.bindNull().bindNull().bindNull();
    return database.run(row);
}

Result<std::vector<SavedQuery>> readSavedQueries(RunStore& store)
{
    std::vector<SavedQuery> queries;
    STAGEWRIGHT_TRY(const auto there, hasTable(*store.database, "saved_query"));
    if (!there) return queries;
    STAGEWRIGHT_TRY(auto rows, store.database->prepare("SELECT name, sql, about FROM saved_query ORDER BY name"));
    for (;;) {
        STAGEWRIGHT_TRY(const auto row, store.database->step(rows));
        if (!row) return queries;
        queries.push_back({rows.text(0), rows.text(1), rows.text(2)});
    }
}

Result<void> writeSavedQuery(RunStore& store, const SavedQuery& query)
{
    if (query.name.empty()) return fail(ErrorCode::Usage, "a saved query needs a name", "give it one");
    STAGEWRIGHT_TRY(auto row,
                    store.database->prepare("INSERT OR REPLACE INTO saved_query(name, sql, about) VALUES(?,?,?)"));
    row.bind(std::string_view(query.name)).bind(std::string_view(query.sql)).bind(std::string_view(query.about));
    return store.database->run(row);
}

Result<void> removeSavedQuery(RunStore& store, const std::string& name)
{
    STAGEWRIGHT_TRY(auto row, store.database->prepare("DELETE FROM saved_query WHERE name=?"));
    row.bind(std::string_view(name));
    return store.database->run(row);
}

} // namespace stagewright
