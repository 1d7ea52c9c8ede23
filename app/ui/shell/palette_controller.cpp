#include "app/ui/shell/palette_controller.h"

#include <QFileInfo>
#include <QSettings>

#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/settings_change.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/library/registry.h"
#include "widgets/literals.h"
#include "widgets/palette/palette_words.h"
#include "widgets/panel/op_query.h"
#include "widgets/panel/selection_column.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr int usedKept = 30;
constexpr int opsOffered = 8;

// Why an action is disabled now.
QString whyDisabled(Workspace& workspace, const ActionEntry& entry)
{
    using Mode = Shown::Mode;
    const Mode mode = workspace.shown().mode();
    if (entry.needs == Needs::TwoRuns && workspace.runs()->refs().size() < 2)
        return u"Open or record a second run first."_s;
    if (entry.needs == Needs::Nothing || entry.needs == Needs::TwoRuns) return entry.missing;
    if (mode == Mode::Empty) return u"No run is open."_s;
    if (entry.needs == Needs::Editing && mode != Mode::Edit) return u"Only while editing a schedule (E)."_s;
    if (entry.needs == Needs::Reading && mode == Mode::Edit) return u"Not while editing a schedule."_s;
    if (!entry.missing.isEmpty()) return entry.missing;
    if (entry.needs == Needs::Editing) return u"Select an op first."_s;
    if (mode == Mode::Edit) return u"Not while editing a schedule; press E to leave."_s;
    if (mode == Mode::Compare) return u"Not while comparing runs; press Ctrl+K to leave."_s;
    const auto shown = workspace.shown().view();
    if (shown && shown->excerpt)
        return u"Only the part in view is read: this needs a whole step, and one of this run's is too large for it."_s;
    if (shown && shown->partial && shown->panel->isPart())
        return u"A step of this run is too large to read whole: zoom in, or click an op."_s;
    if (shown && shown->partial) return u"The run is still being recorded."_s;
    return u"Not available for this view."_s;
}

QStringList usedLately() { return QSettings().value(u"palette/used"_s).toStringList(); }

} // namespace

std::vector<ActionEntry> PaletteController::actionTable()
{
    return {
        item("palette", ActionGroup::EditFind, u"Comman&d palette…"_s, "Ctrl+Shift+P",
             u"Finds any action, run, schedule, file or op by a few letters of its name"_s),
    };
}

PaletteController::PaletteController(Workspace& workspace) : Feature(workspace)
{
    connect(workspace.actions()["palette"], &QAction::triggered, this, &PaletteController::open);
}

CommandPalette* PaletteController::open()
{
    if (m_palette) {
        m_palette->close();
        return nullptr;
    }
    m_palette = new CommandPalette(m_workspace.theme(), m_workspace.window());
    m_palette->setAttribute(Qt::WA_DeleteOnClose);
    connect(m_palette, &CommandPalette::performed, this, [](const QString& id) {
        if (id.startsWith("op:"_L1)) return;
        changeSettings([&id](QSettings& settings) {
            QStringList used = usedLately();
            used.removeAll(id);
            used.prepend(id);
            settings.setValue(u"palette/used"_s, QStringList(used.mid(0, usedKept)));
        });
    });
    m_palette->model()->setProvider([this](const QString& pattern) { return ops(pattern); });
    m_palette->model()->setEntries(entries(), usedLately());
    m_palette->openOver(m_workspace.window());
    return m_palette;
}

std::vector<PaletteEntry> PaletteController::entries() const
{
    std::vector<PaletteEntry> all;
    Workspace& workspace = m_workspace;
    for (const auto& [declared, action] : workspace.actions().all()) {
        if (declared.id == "palette" || declared.id == "openRecent") continue;
        PaletteEntry entry;
        entry.id = u"action:"_s + QString::fromLatin1(declared.id);
        entry.category = u"Action"_s;
        entry.title = action->text().remove(u'&').remove(u"…"_s);
        if (!declared.tooltip.isEmpty()) entry.detail = action->statusTip();
        if (!action->shortcuts().isEmpty()) entry.keys = action->shortcuts().front().toString(QKeySequence::NativeText);
        if (action->isCheckable() && action->isChecked()) entry.detail = u"on. "_s + entry.detail;
        if (!action->isEnabled()) entry.disabled = whyDisabled(workspace, declared);
        entry.words = wordsOfAction(QString::fromLatin1(declared.id));
        entry.perform = [action = action] { action->trigger(); };
        all.push_back(std::move(entry));
    }
    for (const RunRef& ref : workspace.runs()->refs()) {
        const RunInfo* info = workspace.runs()->info(ref);
        const QString file = workspace.runs()->indexOfFile(ref.file).data().toString();
        PaletteEntry entry;
        entry.id = u"run:%1#%2"_s.arg(ref.file).arg(ref.id);
        entry.category = u"Run"_s;
        entry.title = runTitle(*info);
        entry.detail = u"%1, run %2"_s.arg(file).arg(ref.id);
        entry.perform = [&workspace, ref] { workspace.shown().showRun(ref); };
        all.push_back(std::move(entry));
    }
    const QStringList open = workspace.runs()->files();
    QStringList files = open;
    for (const QString& file : workspace.feature<FileOpening>()->recentFiles())
        if (!files.contains(file)) files << file;
    for (const QString& file : files) {
        if (file.startsWith("sim:"_L1)) continue;
        PaletteEntry entry;
        entry.id = u"file:"_s + file;
        entry.category = u"File"_s;
        entry.title = QFileInfo(file).fileName();
        entry.detail = (open.contains(file) ? u"open, in %1"_s : u"in %1"_s).arg(QFileInfo(file).absolutePath());
        entry.perform = [&workspace, file] { workspace.feature<FileOpening>()->openFiles({file}); };
        all.push_back(std::move(entry));
    }
    for (const ScheduleInfo& info : allSchedules()) {
        PaletteEntry entry;
        const QString name = QString::fromUtf8(info.name.data(), static_cast<qsizetype>(info.name.size()));
        entry.id = u"schedule:"_s + name;
        entry.category = u"Schedule"_s;
        entry.title = scheduleTitle(name.toStdString());
        entry.detail = QString::fromUtf8(info.summary.data(), static_cast<qsizetype>(info.summary.size()));
        entry.perform = [&workspace, name] {
            const auto shown = workspace.shown().view();
            Shape shape{4, 8, 0};
            if (shown && shown->run->info.ranks > 0)
                shape = {shown->run->info.ranks, std::max(1, shown->run->info.microbatches), 0};
            workspace.feature<LibraryOpening>()->newFromLibrary(name, shape);
        };
        all.push_back(std::move(entry));
    }
    return all;
}

// Ops are offered where the pattern reads as one: "2B5", "rank:2 mb:5".
std::vector<PaletteEntry> PaletteController::ops(const QString& pattern) const
{
    std::vector<PaletteEntry> found;
    const auto& panels = m_workspace.views().timeline->panels();
    if (panels.empty() || pattern.trimmed().size() < 3) return found;
    const OpQuery query = parseOpQuery(pattern);
    if (!query.fault.isEmpty() || !query.words.isEmpty() ||
        (!query.op && !query.rank && !query.stage && !query.microbatch))
        return found;
    const TimelinePanel& panel = *panels.front();
    if (panel.timeline->spans().size() > 2'000'000) return found; // the search field finds them off the GUI thread
    for (const SpanId id : findSpans(*panel.timeline, query, panel.step)) {
        if (static_cast<int>(found.size()) == opsOffered) break;
        PaletteEntry entry;
        entry.id = u"op:%1"_s.arg(id);
        entry.category = u"Op"_s;
        entry.title = opOnRank(*panel.timeline, id);
        const Span& span = panel.timeline->spans()[id];
        entry.detail = u"%1 at %2"_s.arg(durationText(span.duration(), panel.units),
                                         durationText(panel.toAxis(span.start), panel.units));
        entry.perform = [this, id] {
            m_workspace.viewState()->select({0, id});
            m_workspace.views().timeline->selection().show({0, id});
            m_workspace.views().timeline->setFocus();
        };
        found.push_back(std::move(entry));
    }
    return found;
}

std::vector<ShowEntry> PaletteController::showTable()
{
    return {
        {.name = "palette",
         .at = 100,
         .dialog =
             [](const ShowRequest& request) {
                 return ShownDialog{request.workspace.feature<PaletteController>()->open()};
             }},
    };
}

FeatureEntry paletteFeature() { return featureEntry<PaletteController>(); }

} // namespace stagewright
