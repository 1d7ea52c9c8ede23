#include "app/ui/shell/palette_controller.h"

#include <QFileInfo>
#include <QSettings>

#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/settings_change.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/library/registry.h"
#include "widgets/panel/op_query.h"
#include "widgets/panel/side_panel.h"
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
    const auto tr = [](const char* text) { return PaletteController::tr(text); };
    if (entry.needs == Needs::TwoRuns && workspace.runs()->refs().size() < 2)
        return tr("Open or record a second run first.");
    if (entry.needs == Needs::Nothing || entry.needs == Needs::TwoRuns) return entry.missing;
    if (mode == Mode::Empty) return tr("No run is open.");
    if (entry.needs == Needs::Editing && mode != Mode::Edit) return tr("Only while editing a schedule (E).");
    if (entry.needs == Needs::Reading && mode == Mode::Edit) return tr("Not while editing a schedule.");
    if (!entry.missing.isEmpty()) return entry.missing;
    if (entry.needs == Needs::Editing) return tr("Select an op first.");
    if (mode == Mode::Edit) return tr("Not while editing a schedule; press E to leave.");
    if (mode == Mode::Compare) return tr("Not while comparing runs; press Ctrl+K to leave.");
    const auto shown = workspace.shown().view();
    if (shown && shown->excerpt)
        return tr("Only the part in view is read: this needs a whole step, and one of this run's is too large for it.");
    if (shown && shown->partial && shown->panel->isPart())
        return tr("A step of this run is too large to read whole: zoom in, or click an op.");
    if (shown && shown->partial) return tr("The run is still being recorded.");
    return tr("Not available for this view.");
}

QStringList usedLately() { return QSettings().value(QStringLiteral("palette/used")).toStringList(); }

} // namespace

std::vector<ActionEntry> PaletteController::actionTable()
{
    return {
        {.id = "palette",
         .group = ActionGroup::EditFind,
         .text = tr("Comman&d palette…"),
         .keys = "Ctrl+Shift+P",
         .tooltip = tr("Finds any action, run, schedule, file or op by a few letters of its name")},
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
        if (id.startsWith(QLatin1String("op:"))) return;
        changeSettings([&id](QSettings& settings) {
            QStringList used = usedLately();
            used.removeAll(id);
            used.prepend(id);
            settings.setValue(QStringLiteral("palette/used"), QStringList(used.mid(0, usedKept)));
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
        entry.id = QStringLiteral("action:") + QString::fromLatin1(declared.id);
        entry.category = tr("Action");
        entry.title = action->text().remove(QLatin1Char('&')).remove(QStringLiteral("…"));
        if (!declared.tooltip.isEmpty()) entry.detail = action->statusTip();
        if (!action->shortcuts().isEmpty()) entry.keys = action->shortcuts().front().toString(QKeySequence::NativeText);
        if (action->isCheckable() && action->isChecked()) entry.detail = tr("on. ") + entry.detail;
        if (!action->isEnabled()) entry.disabled = whyDisabled(workspace, declared);
        entry.perform = [action = action] { action->trigger(); };
        all.push_back(std::move(entry));
    }
    for (const RunRef& ref : workspace.runs()->refs()) {
        const RunInfo* info = workspace.runs()->info(ref);
        const QString file = workspace.runs()->indexOfFile(ref.file).data().toString();
        PaletteEntry entry;
        entry.id = QStringLiteral("run:%1#%2").arg(ref.file).arg(ref.id);
        entry.category = tr("Run");
        entry.title = runTitle(*info);
        entry.detail = tr("%1, run %2").arg(file).arg(ref.id);
        entry.perform = [&workspace, ref] { workspace.shown().showRun(ref); };
        all.push_back(std::move(entry));
    }
    const QStringList open = workspace.runs()->files();
    QStringList files = open;
    for (const QString& file : workspace.feature<FileOpening>()->recentFiles())
        if (!files.contains(file)) files << file;
    for (const QString& file : files) {
        if (file.startsWith(QLatin1String("sim:"))) continue;
        PaletteEntry entry;
        entry.id = QStringLiteral("file:") + file;
        entry.category = tr("File");
        entry.title = QFileInfo(file).fileName();
        entry.detail = (open.contains(file) ? tr("open, in %1") : tr("in %1")).arg(QFileInfo(file).absolutePath());
        entry.perform = [&workspace, file] { workspace.feature<FileOpening>()->openFiles({file}); };
        all.push_back(std::move(entry));
    }
    for (const ScheduleInfo& info : allSchedules()) {
        PaletteEntry entry;
        const QString name = QString::fromUtf8(info.name.data(), static_cast<qsizetype>(info.name.size()));
        entry.id = QStringLiteral("schedule:") + name;
        entry.category = tr("Schedule");
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
        entry.id = QStringLiteral("op:%1").arg(id);
        entry.category = tr("Op");
        entry.title = opOnRank(*panel.timeline, id);
        const Span& span = panel.timeline->spans()[id];
        entry.detail =
            tr("%1 at %2")
                .arg(durationText(span.duration(), panel.units), durationText(panel.toAxis(span.start), panel.units));
        entry.perform = [this, id] {
            m_workspace.viewState()->select({0, id});
            m_workspace.views().timeline->ensureVisible({0, id});
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
