#include "app/ui/palette_controller.h"

#include <QFileInfo>
#include <QSettings>

#include "app/ui/main_window.h"
#include "schedules/registry.h"
#include "widgets/panel/op_query.h"

namespace stagewright {
namespace {

constexpr int usedKept = 30;
constexpr int opsOffered = 8;

// In words, of an action that is disabled now.
QString whyDisabled(MainWindow& window, const ActionEntry& line)
{
    using I = ActionId;
    using Mode = MainWindow::Mode;
    const Mode mode = window.mode();
    const auto tr = [](const char* text) { return PaletteController::tr(text); };
    switch (line.id) {
    case I::OpenRecent: return tr("No file was opened lately.");
    case I::Undo: return tr("Nothing was changed.");
    case I::Redo: return tr("Nothing was undone.");
    case I::Back: return tr("There is no view before this one.");
    case I::Forward: return tr("There is no view after this one.");
    case I::CancelRecording: return tr("Nothing is being recorded.");
    case I::Record: return tr("A recording is under way.");
    case I::Compare: return window.runs()->refs().size() > 1 ? tr("No run is shown.") : tr("A second run is needed: open or record one.");
    case I::SwapCompare: return tr("Two runs must be compared.");
    default: break;
    }
    if (mode == Mode::Empty) return tr("No run is open.");
    if (line.id >= I::BookmarkJump1 && line.id <= I::BookmarkJump9) return tr("This bookmark is not set.");
    switch (line.id) {
    case I::RunEdited: return mode == Mode::Edit ? tr("The order must be valid, and no recording under way.") : tr("Only while a schedule is edited (E).");
    case I::PreviousStep:
    case I::NextStep: return tr("The run shown has one step.");
    case I::Residuals: return tr("The run shown was simulated: it has no measured times.");
    case I::AddNote:
    case I::KeepNote:
    case I::RemoveNote: return mode == Mode::Edit ? tr("Not while a schedule is edited.") : tr("There is no note.");
    default: break;
    }
    if (line.menu == MenuId::Order) {
        if (mode != Mode::Edit) return tr("Only while a schedule is edited (E).");
        switch (line.id) {
        case I::PasteOps: return tr("Nothing was copied.");
        case I::SplitBackward: return tr("No full backward (B) is chosen.");
        case I::MergeBackward: return tr("No input gradient (I) or weight gradient (W) is chosen.");
        case I::SwapOps: return tr("Two ops of one rank must be chosen.");
        case I::FillGap: return tr("No gap is chosen: click idle time, or an op behind it.");
        case I::GoThere:
        case I::CarryThere: return tr("No op was dropped where it can't stand.");
        case I::RevertOrder: return tr("Nothing was changed.");
        case I::GhostLibrary: return tr("No schedule of the library is compared with.");
        default: return tr("An op must be chosen.");
        }
    }
    if (mode == Mode::Edit) return tr("Not while a schedule is edited; E leaves.");
    if (mode == Mode::Compare) return tr("Not while two runs are compared; Ctrl+K leaves.");
    const auto shown = window.shownView();
    if (shown && shown->partial && shown->panel->isPart()) return tr("A step of this run has too many ops to be analysed here.");
    if (shown && shown->partial) return tr("The run is still being recorded.");
    return tr("It does not apply to what is shown.");
}

QStringList usedLately() { return QSettings().value(QStringLiteral("palette/used")).toStringList(); }

} // namespace

PaletteController::PaletteController(MainWindow& window) : QObject(&window), m_window(window)
{
    connect(window.actions()[ActionId::Palette], &QAction::triggered, this, &PaletteController::open);
}

CommandPalette* PaletteController::open()
{
    if (m_palette) {
        m_palette->close();
        return nullptr;
    }
    m_palette = new CommandPalette(m_window.theme(), &m_window);
    m_palette->setAttribute(Qt::WA_DeleteOnClose);
    connect(m_palette, &CommandPalette::performed, this, [](const QString& id) {
        if (id.startsWith(QLatin1String("op:"))) return;
        QStringList used = usedLately();
        used.removeAll(id);
        used.prepend(id);
        QSettings().setValue(QStringLiteral("palette/used"), QStringList(used.mid(0, usedKept)));
    });
    m_palette->model()->setProvider([this](const QString& pattern) { return ops(pattern); });
    m_palette->model()->setEntries(entries(), usedLately());
    m_palette->openOver(&m_window);
    return m_palette;
}

std::vector<PaletteEntry> PaletteController::entries() const
{
    std::vector<PaletteEntry> all;
    MainWindow& window = m_window;
    for (const ActionEntry& line : Actions::table()) {
        if (line.id == ActionId::Palette || line.id == ActionId::OpenRecent) continue;
        QAction* action = window.actions()[line.id];
        PaletteEntry entry;
        entry.id = QStringLiteral("action:") + QString::fromLatin1(line.name);
        entry.category = tr("Action");
        entry.title = action->text().remove(QLatin1Char('&')).remove(QStringLiteral("…"));
        if (*line.tooltip != '\0') entry.detail = action->statusTip();
        if (!action->shortcuts().isEmpty()) entry.keys = action->shortcuts().front().toString(QKeySequence::NativeText);
        if (action->isCheckable() && action->isChecked()) entry.detail = tr("on now. ") + entry.detail;
        if (!action->isEnabled()) entry.disabled = whyDisabled(window, line);
        entry.perform = [action] { action->trigger(); };
        all.push_back(std::move(entry));
    }
    for (const RunRef& ref : window.runs()->refs()) {
        const RunInfo* info = window.runs()->info(ref);
        const QString file = window.runs()->indexOfFile(ref.file).data().toString();
        PaletteEntry entry;
        entry.id = QStringLiteral("run:%1#%2").arg(ref.file).arg(ref.id);
        entry.category = tr("Run");
        entry.title = runTitle(*info);
        entry.detail = tr("%1, run %2").arg(file).arg(ref.id);
        entry.perform = [&window, ref] { window.showRun(ref); };
        all.push_back(std::move(entry));
    }
    const QStringList open = window.runs()->files();
    QStringList files = open;
    for (const QString& file : window.recentFiles())
        if (!files.contains(file)) files << file;
    for (const QString& file : files) {
        if (file.startsWith(QLatin1String("sim:"))) continue;
        PaletteEntry entry;
        entry.id = QStringLiteral("file:") + file;
        entry.category = tr("File");
        entry.title = QFileInfo(file).fileName();
        entry.detail = (open.contains(file) ? tr("open, in %1") : tr("in %1")).arg(QFileInfo(file).absolutePath());
        entry.perform = [&window, file] { window.openFiles({file}); };
        all.push_back(std::move(entry));
    }
    for (const ScheduleInfo& info : allSchedules()) {
        PaletteEntry entry;
        const QString name = QString::fromUtf8(info.name.data(), static_cast<qsizetype>(info.name.size()));
        entry.id = QStringLiteral("schedule:") + name;
        entry.category = tr("Schedule");
        entry.title = scheduleTitle(name.toStdString());
        entry.detail = QString::fromUtf8(info.summary.data(), static_cast<qsizetype>(info.summary.size()));
        entry.perform = [&window, name] {
            const auto shown = window.shownView();
            Shape shape{4, 8, 0};
            if (shown && shown->run->info.ranks > 0) shape = {shown->run->info.ranks, std::max(1, shown->run->info.microbatches), 0};
            window.newFromLibrary(name, shape);
        };
        all.push_back(std::move(entry));
    }
    return all;
}

// Ops are offered where the pattern reads as one: "2B5", "rank:2 mb:5".
std::vector<PaletteEntry> PaletteController::ops(const QString& pattern) const
{
    std::vector<PaletteEntry> found;
    const auto& panels = m_window.timelineView()->panels();
    if (panels.empty() || pattern.trimmed().size() < 3) return found;
    const OpQuery query = parseOpQuery(pattern);
    if (!query.fault.isEmpty() || !query.words.isEmpty() || (!query.op && !query.rank && !query.stage && !query.microbatch)) return found;
    const TimelinePanel& panel = *panels.front();
    if (panel.timeline->spans().size() > 2'000'000) return found; // the search field finds them off the GUI thread
    for (const SpanId id : findSpans(*panel.timeline, query, panel.step)) {
        if (static_cast<int>(found.size()) == opsOffered) break;
        PaletteEntry entry;
        entry.id = QStringLiteral("op:%1").arg(id);
        entry.category = tr("Op");
        entry.title = opOnRank(*panel.timeline, id);
        const Span& span = panel.timeline->spans()[id];
        entry.detail = tr("%1 at %2").arg(durationText(span.duration(), panel.units), durationText(panel.toAxis(span.start), panel.units));
        entry.perform = [this, id] {
            m_window.viewState()->select({0, id});
            m_window.timelineView()->ensureVisible({0, id});
            m_window.timelineView()->setFocus();
        };
        found.push_back(std::move(entry));
    }
    return found;
}

} // namespace stagewright
