#include "app/ui/mapper/mapper_controller.h"

#include <map>

#include <QAction>
#include <QDir>
#include <QDockWidget>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QSettings>

#include "app/ui/mapper/mapper_panel.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "traces/foreign/label_rules.h"
#include "traces/format/atomic_file.h"
#include "traces/import/rule_draft.h"
#include "widgets/document/figure_table.h"
#include "widgets/literals.h"
#include "widgets/preferences/preferences.h"

namespace stagewright {
namespace {

constexpr std::size_t mostMarks = 20'000;
constexpr qint64 mostRuleBytes = 1 << 20;

struct Previewed {
    Result<RulePreview> preview;
    // of the ranges that are ops or steps; null: too many to mark, or none
    std::shared_ptr<const std::vector<SpanId>> marks;
};

Previewed previewOf(const RunView& view, const TimelineRanges& ranges, const std::string& rules,
                    const std::stop_token& stop)
{
    Previewed out{previewRules(ranges.ranks, rules, ranges.messages, stop), nullptr};
    if (!out.preview || out.preview->matched == 0) return out;
    const auto meanings = LabelRules::parse(rules);
    const Timeline& timeline = *view.run->timeline;
    std::map<std::uint32_t, bool> matches; // by label
    std::vector<SpanId> marks;
    for (const Track& track : timeline.tracks()) {
        if (!isRangeTrack(track)) continue;
        for (SpanId id = track.begin; id < track.end && marks.size() <= mostMarks; ++id) {
            const Span& span = timeline.spans()[id];
            const auto [found, added] = matches.try_emplace(span.label, false);
            if (added) {
                const auto meaning = meanings->meaningOf(timeline.nameOf(span));
                found->second =
                    meaning && meaning->dialect == LabelDialect::User && meaning->what == LabelMeaning::What::Op;
            }
            if (found->second) marks.push_back(id);
        }
    }
    if (!marks.empty() && marks.size() <= mostMarks)
        out.marks = std::make_shared<const std::vector<SpanId>>(std::move(marks));
    return out;
}

// The traces that the run was imported from, as import notes them.
QStringList tracesOf(const Run& run)
{
    for (const auto& [key, value] : run.configuration)
        if (key == "sources") return QString::fromStdString(value).split(u'\n', Qt::SkipEmptyParts);
    return {};
}

} // namespace

std::vector<ActionEntry> MapperController::actionTable()
{
    return {
        item("mapper", ActionGroup::AnalyseTools, u"Make a &pipeline of ranges"_s, "Ctrl+Alt+R",
             u"Turns named ranges into forwards and backwards, and shows the ranges that match and the "
             "schedule that results"_s,
             {.at = 20, .checkable = true}),
    };
}

MapperController::MapperController(Workspace& workspace)
    : MapperController(workspace, new MapperPanel, workspace.actions()["mapper"])
{
}

MapperController::MapperController(Workspace& workspace, MapperPanel* panel, QAction* action)
    : DockOfStep(workspace, u"mapperDock"_s, u"Pipeline of ranges"_s, panel, action,
                 [panel] { panel->names()->setFocus(); }),
      m_toggle(action), m_panel(panel), m_previewing(workspace.jobs())
{
    connect(m_panel, &MapperPanel::rulesChanged, this, &MapperController::preview);
    connect(m_panel, &MapperPanel::suggestAsked, this, &MapperController::suggest);
    connect(m_panel, &MapperPanel::saveAsked, this, [this] { askToSave(false); });
    connect(m_panel, &MapperPanel::applyAsked, this, [this] { askToSave(true); });
    connect(m_panel, &MapperPanel::openAsked, this, [this] {
        const QString path = QFileDialog::getOpenFileName(m_workspace.window(), u"Open rules"_s,
                                                          PreferenceStore::instance().value().folder,
                                                          u"Rules (*.rules *.txt);;All files (*)"_s);
        if (!path.isEmpty()) openRules(path);
    });
    connect(workspace.viewState(), &ViewState::selectionChanged, this, &MapperController::followSelection);
    connect(dock(), &QDockWidget::visibilityChanged, this, [this] {
        if (dock()->isHidden()) mark();
    });
}

void MapperController::compute(const std::shared_ptr<const RunView>& view)
{
    struct Read {
        std::shared_ptr<const TimelineRanges> ranges;
        std::shared_ptr<const std::vector<NamePattern>> patterns;
    };
    m_view = view;
    m_panel->setWorking();
    m_previewing.drop();
    m_job.start(
        [view] {
            Read read{std::make_shared<const TimelineRanges>(rangesOf(*view->run->timeline)), nullptr};
            read.patterns = std::make_shared<const std::vector<NamePattern>>(namePatterns(read.ranges->ranks));
            return read;
        },
        [this](Read read) {
            m_ranges = std::move(read.ranges);
            m_patterns = std::move(read.patterns);
            const bool any = !m_patterns->empty();
            m_panel->setPatterns(
                any ? m_patterns : nullptr,
                u"This run has no named ranges: record with record_function or NVTX ranges around the passes."_s);
            if (any) preview();
        });
}

void MapperController::clear()
{
    m_previewing.drop();
    m_view.reset();
    m_ranges.reset();
    m_patterns.reset();
    m_panel->setPatterns(nullptr, u"No run is shown. Choose one in the list, or open a file (Ctrl+O)."_s);
}

void MapperController::preview()
{
    if (!m_view || !m_ranges) return;
    m_previewing.start([view = m_view, ranges = m_ranges, rules = m_panel->rules().toStdString()](
                           const std::stop_token& stop) { return previewOf(*view, *ranges, rules, stop); },
                       [this](const Previewed& answer) {
                           m_panel->setPreview(answer.preview);
                           if (dock()->isHidden()) return;
                           m_marked = answer.marks != nullptr;
                           m_workspace.feature<OpFinding>()->mark(answer.marks);
                       });
}

void MapperController::mark()
{
    if (!m_marked) return;
    m_marked = false;
    m_workspace.feature<OpFinding>()->mark(nullptr);
}

void MapperController::open()
{
    if (dock()->isHidden()) m_toggle->trigger();
}

void MapperController::suggest()
{
    if (!m_ranges || !m_patterns) return;
    m_previewing.start(
        [ranges = m_ranges, patterns = m_patterns](const std::stop_token& stop) {
            return suggestRules(ranges->ranks, *patterns, ranges->messages, stop);
        },
        [this](std::optional<RuleDraft> draft) {
            if (draft)
                m_panel->setRules(QString::fromStdString(draft->text));
            else
                m_workspace.room().tell(u"No name looks like a forward pass: choose one and say what it is"_s, 8000);
        });
}

bool MapperController::saveRules(const QString& path)
{
    const auto written = writeFileAtomically(path.toStdString(), m_panel->rules().toStdString());
    if (!written) {
        m_workspace.banner()->showError(u"could not save the rules"_s, written.error());
        return false;
    }
    QSettings().setValue(u"import/rules"_s, path); // the import dialog starts with them
    m_workspace.room().tell(u"Saved the rules in %1"_s.arg(QDir::toNativeSeparators(path)), 6000);
    return true;
}

bool MapperController::openRules(const QString& path)
{
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly) || file.size() > mostRuleBytes) {
        m_workspace.banner()->showError(
            u"could not open the rules"_s,
            Error{ErrorCode::Unreadable,
                  "file " + path.toStdString() + ": " +
                      (file.isOpen() ? std::string("more than a megabyte of rules") : file.errorString().toStdString()),
                  "choose a text file with one rule per line"});
        return false;
    }
    m_panel->setRules(QString::fromUtf8(file.readAll()));
    return true;
}

void MapperController::askToSave(bool thenImport)
{
    auto* dialog =
        new QFileDialog(m_workspace.window(), u"Save the rules"_s, PreferenceStore::instance().value().folder,
                        u"Rules (*.rules *.txt);;All files (*)"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix(u"rules"_s);
    const QStringList traces = m_view ? tracesOf(*m_view->run) : QStringList();
    if (!traces.isEmpty() && QFileInfo(QFileInfo(traces.front()).absolutePath()).isWritable())
        dialog->setDirectory(QFileInfo(traces.front()).absolutePath());
    dialog->selectFile(u"ranges.rules"_s);
    connect(dialog, &QFileDialog::fileSelected, this, [this, thenImport](const QString& path) {
        if (saveRules(path) && thenImport) importWith(path);
    });
    dialog->open();
}

void MapperController::importWith(const QString& rulesFile)
{
    if (!m_view) return;
    QStringList traces, missing;
    for (const QString& path : tracesOf(*m_view->run)) (QFileInfo::exists(path) ? traces : missing) << path;
    if (!missing.isEmpty())
        m_workspace.banner()->showNote(u"%1 is not where it was imported from; choose the traces in the dialog"_s.arg(
            QDir::toNativeSeparators(missing.front())));
    m_workspace.feature<TraceImporting>()->openTraces(missing.isEmpty() ? traces : QStringList(), rulesFile);
}

void MapperController::followSelection()
{
    const SpanRef selected = m_workspace.viewState()->selected();
    if (dock()->isHidden() || !m_view || !m_patterns || selected.panel != 0 || !selected.valid() ||
        m_view != m_workspace.shown().view())
        return;
    const Timeline& timeline = *m_view->run->timeline;
    if (selected.span >= timeline.spans().size() || timeline.trackOf(selected.span).lane != Lane::Other) return;
    m_panel->chooseName(timeline.nameOf(timeline.spans()[selected.span]));
}

namespace {

// With the rules that are suggested, and a name chosen.
void showMapper(const ShowRequest& request)
{
    auto* mapper = request.workspace.feature<MapperController>();
    mapper->open();
    request.settle();
    mapper->suggest();
    request.settle();
    mapper->panel()->chooseRow(1);
}

} // namespace

std::vector<ShowEntry> MapperController::showTable()
{
    return {
        {"mapper", 300, &showMapper},
    };
}

FeatureEntry mapperFeature() { return featureEntry<MapperController>(); }

} // namespace stagewright
