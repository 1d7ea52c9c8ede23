#include "app/ui/notes/bookmarks_controller.h"

#include <algorithm>
#include <array>

#include <QFileInfo>
#include <QStatusBar>

#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/workspace.h"
#include "traces/store/run_file.h"
#include "widgets/background.h"
#include "widgets/literals.h"

namespace stagewright {
namespace {

constexpr std::array<ActionId, 9> jumps{"bookmarkJump1", "bookmarkJump2", "bookmarkJump3",
                                        "bookmarkJump4", "bookmarkJump5", "bookmarkJump6",
                                        "bookmarkJump7", "bookmarkJump8", "bookmarkJump9"};
constexpr std::array<ActionId, 9> sets{"bookmarkSet1", "bookmarkSet2", "bookmarkSet3", "bookmarkSet4", "bookmarkSet5",
                                       "bookmarkSet6", "bookmarkSet7", "bookmarkSet8", "bookmarkSet9"};

// Slots count from 1.
ActionId idOf(const std::array<ActionId, 9>& ids, int slot) { return ids[static_cast<std::size_t>(slot - 1)]; }

} // namespace

std::vector<ActionEntry> BookmarksController::actionTable()
{
    std::vector<ActionEntry> table;
    for (int slot = 1; slot <= 9; ++slot)
        table.push_back({.id = idOf(jumps, slot),
                         .group = ActionGroup::Bookmarks,
                         .text = u"Go to bookmark %1"_s.arg(slot),
                         .keys = u"Ctrl+%1"_s.arg(slot),
                         .missing = u"This bookmark is not set."_s});
    for (int slot = 1; slot <= 9; ++slot)
        table.push_back({.id = idOf(sets, slot),
                         .group = ActionGroup::Bookmarks,
                         .line = slot == 1,
                         .text = u"Set bookmark %1"_s.arg(slot),
                         .keys = u"Ctrl+Shift+%1"_s.arg(slot)});
    return table;
}

BookmarksController::BookmarksController(Workspace& workspace) : Feature(workspace)
{
    for (int slot = 1; slot <= 9; ++slot) {
        connect(workspace.actions()[idOf(jumps, slot)], &QAction::triggered, this, [this, slot] { jump(slot); });
        connect(workspace.actions()[idOf(sets, slot)], &QAction::triggered, this, [this, slot] { set(slot); });
    }
    connect(workspace.library(), &RunLibrary::listed, this, [this](const QString& file) { load(file); });
    connect(&workspace, &Workspace::actionsRefreshed, this, &BookmarksController::refresh);
    connect(&workspace.shown(), &Shown::runShown, this, [this] {
        if (!m_later || !(m_workspace.shown().ref() == m_later->first)) return;
        const Bookmark bookmark = m_later->second;
        m_later.reset();
        apply(bookmark);
    });
}

std::optional<std::pair<QString, Bookmark>> BookmarksController::find(int slot) const
{
    const QString shown = m_workspace.shown().ref().file;
    std::optional<std::pair<QString, Bookmark>> found;
    for (const auto& [file, bookmarks] : m_known) {
        if (!m_workspace.runs()->hasFile(file)) continue;
        for (const Bookmark& bookmark : bookmarks)
            if (bookmark.slot == slot && m_workspace.runs()->info({file, bookmark.run}) != nullptr &&
                (!found || file == shown))
                found.emplace(file, bookmark);
    }
    return found;
}

void BookmarksController::load(const QString& file)
{
    inBackground(
        this,
        [file]() -> Result<std::vector<Bookmark>> {
            STAGEWRIGHT_TRY(auto opened, RunFile::open(file.toStdString(), OpenMode::Read));
            return (opened)->bookmarks();
        },
        [this, file](Result<std::vector<Bookmark>> read) {
            if (!read) return;
            std::erase_if(m_known, [&](const auto& one) { return one.first == file; });
            m_known.emplace_back(file, std::move(*read));
            refresh();
        });
}

void BookmarksController::refresh()
{
    const bool shown = m_workspace.shown().view() != nullptr && m_workspace.shown().mode() == Shown::Mode::Run;
    for (int slot = 1; slot <= 9; ++slot) {
        QAction* jump = m_workspace.actions()[idOf(jumps, slot)];
        const auto found = find(slot);
        jump->setEnabled(found.has_value());
        const RunInfo* info = found ? m_workspace.runs()->info({found->first, found->second.run}) : nullptr;
        jump->setText(
            info == nullptr
                ? u"Go to bookmark %1"_s.arg(slot)
                : u"Go to bookmark %1: %2, step %3"_s.arg(slot).arg(runTitle(*info)).arg(found->second.step + 1));
        m_workspace.actions()[idOf(sets, slot)]->setEnabled(shown);
    }
}

void BookmarksController::set(int slot)
{
    const auto view = m_workspace.shown().view();
    if (!view || slot < 1 || slot > 9) return;
    Bookmark bookmark;
    bookmark.slot = slot;
    bookmark.run = view->ref.id;
    bookmark.step = view->step;
    const TimeRange range = m_workspace.viewState()->visible();
    bookmark.begin = range.begin;
    bookmark.end = range.end;
    const SpanRef selected = m_workspace.viewState()->selected();
    const bool own = m_workspace.shown().mode() != Shown::Mode::Edit && !m_workspace.shown().showsToolPicture();
    if (own && selected.valid() && selected.panel == 0)
        bookmark.selection = noteOnSpan(*view->run->timeline, selected.span);
    const QString file = view->ref.file;
    auto known = std::find_if(m_known.begin(), m_known.end(), [&](const auto& one) { return one.first == file; });
    if (known == m_known.end()) known = m_known.insert(m_known.end(), {file, {}});
    std::erase_if(known->second, [&](const Bookmark& one) { return one.slot == slot; });
    known->second.push_back(bookmark);
    refresh();
    m_workspace.room().tell(u"Bookmark %1 set. Ctrl+%1 returns here."_s.arg(slot), 5000);
    if (m_workspace.library()->isSimulated(file)) return;
    inBackground(
        this,
        [file, bookmark]() -> Result<void> {
            STAGEWRIGHT_TRY(auto opened, RunFile::open(file.toStdString(), OpenMode::Write));
            return (opened)->setBookmark(bookmark);
        },
        [this, file](Result<void> done) {
            if (!done) m_workspace.banner()->showError(u"the bookmark is kept in this window only"_s, done.error());
            emit m_workspace.fileWritten(file);
        });
}

void BookmarksController::jump(int slot)
{
    const auto found = find(slot);
    if (!found) {
        m_workspace.room().tell(u"Bookmark %1 is not set; Ctrl+Shift+%1 sets it"_s.arg(slot), 5000);
        return;
    }
    const RunRef ref{found->first, found->second.run};
    if (m_workspace.shown().mode() == Shown::Mode::Run && m_workspace.shown().ref() == ref &&
        m_workspace.shown().view()->step == found->second.step) {
        apply(found->second);
        return;
    }
    m_later.emplace(ref, found->second);
    m_workspace.shown().showRun(ref, found->second.step);
}

void BookmarksController::apply(const Bookmark& bookmark)
{
    if (bookmark.selection) {
        const SpanId span = spanOfNote(*m_workspace.shown().view()->run->timeline, *bookmark.selection);
        if (span != noSpan) m_workspace.shown().selectOp(span);
    }
    m_workspace.viewState()->setVisible({bookmark.begin, bookmark.end});
}

FeatureEntry bookmarksFeature() { return featureEntry<BookmarksController>(); }

} // namespace stagewright
