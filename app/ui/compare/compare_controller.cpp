#include "app/ui/compare/compare_controller.h"

#include <algorithm>

#include <QComboBox>
#include <QDialog>
#include <QDialogButtonBox>
#include <QFileInfo>
#include <QGridLayout>
#include <QPushButton>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "app/ui/runs/run_lanes.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/model/kinds.h"
#include "widgets/compare/baseline_strip.h"
#include "widgets/compare/compare_overlay.h"
#include "widgets/compare/compare_panel.h"
#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/panel/figure_measure.h"
#include "widgets/panel/inspector.h"
#include "widgets/panel/section_column.h"
#include "widgets/panel/side_panel.h"
#include "widgets/runs/runs_panel.h"
#include "widgets/style.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr std::size_t mostRuns = 4;

struct Answer {
    std::vector<std::shared_ptr<const Comparison>> comparisons;
    std::vector<std::shared_ptr<const TimelinePanel>> panels;
};

// The start of the op from the start of its step; a full backward also matches the input gradient, and vice versa.
std::optional<Nanos> startOf(const RunView& view, Op op)
{
    const StepOps ops(*view.run->timeline, view.step);
    SpanId span = ops.find(op);
    if (span == noSpan && isReturn(op.kind)) {
        op.kind = otherReturn(op.kind);
        span = ops.find(op);
    }
    if (span == noSpan) return std::nullopt;
    return view.run->timeline->spans()[span].start - view.panel->origin;
}

Result<Answer> answerOf(const std::vector<std::shared_ptr<const RunView>>& views, const std::optional<Op>& alignedAt,
                        const std::stop_token& stop)
{
    Answer answer;
    for (const auto& view : views)
        if (view->panel->isPart())
            return fail(ErrorCode::Invalid,
                        view->run->info.name + ": one of its steps has more than " + std::to_string(detailedSpans) +
                            " ops, " + std::to_string(view->run->info.spanCount) +
                            " spans in all; it is drawn, but its ops are not loaded",
                        "use stagewright compare, which reads the whole run");
    for (std::size_t i = 1; i < views.size(); ++i) {
        STAGEWRIGHT_TRY(auto comparison,
                        compareRuns(*views[0]->run, *views[i]->run, views[0]->step, views[i]->step, {{}, stop}));
        answer.comparisons.push_back(std::make_shared<const Comparison>(std::move(comparison)));
    }
    std::vector<Nanos> starts;
    if (alignedAt)
        for (const auto& view : views) {
            const auto start = startOf(*view, *alignedAt);
            if (!start)
                return fail(ErrorCode::Usage, "op " + toText(*alignedAt) + " does not run in " + view->run->info.name,
                            "align at an op that every run has");
            starts.push_back(*start);
        }
    const QStringList names = distinctTitles(views);
    for (std::size_t i = 0; i < views.size(); ++i) {
        const QString& name = names[static_cast<qsizetype>(i)];
        if (starts.empty() && name == views[i]->panel->name) {
            answer.panels.push_back(views[i]->panel);
            continue;
        }
        if (starts.empty()) {
            auto named = std::make_shared<TimelinePanel>(*views[i]->panel);
            named->name = name;
            answer.panels.push_back(std::move(named));
            continue;
        }
        PanelOptions options;
        options.step = views[i]->panel->step;
        options.name = name;
        options.lead = *std::max_element(starts.begin(), starts.end()) - starts[i];
        options.kernelsByClass = views[i]->panel->byClass;
        options.places = placesOf(*views[i]->run);
        answer.panels.push_back(makePanel(views[i]->panel->timeline, options));
    }
    return answer;
}

} // namespace

std::vector<ActionEntry> CompareController::actionTable()
{
    return {
        item("compare", ActionGroup::AnalyseCompare, u"&Compare…"_s, "Ctrl+K",
             u"Two to four runs on one axis, what differs and why"_s,
             {.at = 0,
              .button = u"Compare"_s,
              .tool = 34,
              .checkable = true,
              .needs = Needs::TwoRuns,
              .missing = u"No run is shown."_s}),
        item("swapCompare", ActionGroup::AnalyseCompare, u"S&wap A and B"_s, {}, {},
             {.at = 20, .needs = Needs::Nothing, .missing = u"Compare two runs first."_s}),
        item("nextCompared", ActionGroup::AnalyseCompare, u"&Other run against A"_s, "Ctrl+Shift+K",
             u"Chooses the run that the panel and the memory curves compare with A"_s, {.at = 20}),
        item("alignAtOp", ActionGroup::AnalyseCompare, u"Align at the selected &op"_s, "Ctrl+J",
             u"Puts the op at the same place on the axis in every run; again: aligns the starts of the steps"_s,
             {.at = 20, .checkable = true}),
        item("setBaseline", ActionGroup::AnalyseCompare, u"Use as &baseline"_s, "Ctrl+Shift+D",
             u"Compares every run shown from now on with this one, until you clear it"_s,
             {.at = 20, .checkable = true}),
    };
}

CompareController::CompareController(Workspace& workspace)
    : Feature(workspace), m_difference(new CompareOverlay(this)), m_strip(new BaselineStrip(workspace.window())),
      m_panel(new ComparePanel(workspace.room().panels())), m_reading(workspace.jobs()), m_comparing(workspace.jobs()),
      m_answering(workspace.jobs())
{
    workspace.views().timeline->add(m_difference);
    workspace.room().panelColumn()->insertWidget(0, m_strip);
    m_strip->hide();
    m_panel->setAccessibleName(u"What differs"_s);
    buildInvitation();
    connect(&workspace.shown(), &Shown::modeChanging, this, [this] {
        Inspector* inspector = m_workspace.room().inspector();
        const bool comparing = m_workspace.shown().mode() == Shown::Mode::Compare;
        if (comparing) inspector->setTool({}, nullptr);
        if (std::exchange(m_comparingShown, comparing) != comparing) {
            inspector->setPage(Inspector::Tab::Compare, comparing ? static_cast<QWidget*>(m_panel) : m_invitation);
            inspector->open(comparing ? Inspector::Tab::Compare : Inspector::Tab::Summary);
        }
        if (!comparing) m_difference->setUnclaimed({}); // what tools draw beside a run is simulated: it has no noise
    });
    connect(&workspace.shown(), &Shown::timesRefreshed, this, [this] {
        const Shown& now = m_workspace.shown();
        if (now.mode() == Shown::Mode::Compare && now.view() && now.other())
            m_panel->setComparison(now.view()->run, now.other()->run, now.comparison());
        m_side.reset(); // in other units
        showSide();
    });
    connect(&workspace.shown(), &Shown::selectionShown, this, &CompareController::showSide);
    connect(&workspace, &Workspace::themeChanged, this, [this] { m_panel->setTheme(m_workspace.theme()); });
    connect(&workspace, &Workspace::actionsRefreshed, this, [this] {
        const bool comparing = m_workspace.shown().mode() == Shown::Mode::Compare;
        Actions& actions = m_workspace.actions();
        actions["compare"]->setEnabled(comparing || m_workspace.runs()->refs().size() > 1);
        actions["compare"]->setChecked(comparing);
        actions["swapCompare"]->setEnabled(comparing);
    });
    workspace.shown().setCaptions(Shown::Mode::Compare, [this]() -> Shown::Captions {
        const Shown& now = m_workspace.shown();
        if (!now.view() || !now.other()) return {};
        QString clock = provenanceText(*now.view()->run);
        if (provenanceText(*now.other()->run) != clock)
            clock = u"A: %1, %2: %3"_s.arg(clock, QString(QChar(static_cast<char16_t>(u'A' + m_against))),
                                           provenanceText(*now.other()->run));
        return {title(), u", "_s + statusText(), clock};
    });
    connect(m_strip, &BaselineStrip::clearAsked, this, [this] { setBaseline({}); });
    connect(&workspace.shown(), &Shown::modeChanged, this, &CompareController::refresh);
    const auto on = [&](ActionId id, auto slot) { connect(workspace.actions()[id], &QAction::triggered, this, slot); };
    on("compare", [this] { toggle(); });
    on("swapCompare", [this] { swap(); });
    on("nextCompared", [this] { setAgainst(m_against + 1 < static_cast<int>(m_views.size()) ? m_against + 1 : 1); });
    on("alignAtOp", [this](bool atOp) {
        const SpanRef selected = m_workspace.viewState()->selected();
        if (!atOp)
            alignAt(std::nullopt);
        else if (selected.valid() && static_cast<std::size_t>(selected.panel) < m_views.size())
            alignAt(m_views[static_cast<std::size_t>(selected.panel)]->run->timeline->spans()[selected.span].op);
        else
            m_workspace.banner()->showRefusal(u"no op is selected"_s, u"select the op to align the runs at"_s);
        refresh();
    });
    on("setBaseline", [this] {
        const RunRef shown = m_workspace.shown().ref();
        setBaseline(shown == baseline() ? RunRef{} : shown);
    });
    ComparePanel* panel = m_panel;
    connect(panel, &ComparePanel::againstAsked, this, &CompareController::setAgainst);
    connect(panel, &ComparePanel::stepAsked, this, &CompareController::setStep);
    connect(panel, &ComparePanel::alignAsked, this, [this](bool atOp) {
        QAction* action = m_workspace.actions()["alignAtOp"];
        if (action->isChecked() != atOp || atOp) {
            action->setChecked(!atOp);
            action->trigger();
        }
        // nothing to align at: restores the box
        if (!m_comparing.running() && m_workspace.shown().mode() == Shown::Mode::Compare) present(false);
    });
    connect(panel, &ComparePanel::opChosen, this, [this](SpanId a, SpanId b) {
        if (m_workspace.shown().mode() != Shown::Mode::Compare) return;
        const SpanRef ref = b != noSpan ? SpanRef{m_against, b} : SpanRef{0, a};
        m_workspace.viewState()->select(ref);
        m_workspace.views().timeline->selection().show(ref);
    });
    refresh();
}

FeatureParts CompareController::parts() { return {.panels = {m_panel, m_invitation}}; }

// The tab Compare while one run is shown.
void CompareController::buildInvitation()
{
    m_invitation = new SectionColumn(m_workspace.room().panels());
    m_invitation->setAccessibleName(u"Compare"_s);
    PanelSection* section = m_invitation->addSection(u"Compare"_s);
    section->addText(u"One run is shown. Beside another one, this tab says what differs and why."_s);
    for (const auto& [id, text] : {std::pair{"compare", u"Compare with another run…"_s},
                                   {"setBaseline", u"Measure every run against this one"_s}}) {
        QAction* action = m_workspace.actions()[id];
        auto* button = new LinkButton(text, action->toolTip());
        connect(button, &QPushButton::clicked, action, &QAction::trigger, Qt::QueuedConnection);
        connect(action, &QAction::changed, button, [button, action] { button->setEnabled(action->isEnabled()); });
        button->setEnabled(action->isEnabled());
        section->addWidget(button);
    }
    section->addText(u"Ctrl+click a run in the list compares it, too."_s, "faint");
    m_invitation->finish();
    m_workspace.room().inspector()->setPage(Inspector::Tab::Compare, m_invitation);
}

// Summary and Selection in a comparison: of A, or of the run whose op is selected.
void CompareController::showSide()
{
    const Shown& now = m_workspace.shown();
    if (now.mode() != Shown::Mode::Compare || m_views.empty()) return;
    const SpanRef selected = m_workspace.viewState()->selected();
    const auto of = selected.valid() && static_cast<std::size_t>(selected.panel) < m_views.size()
                        ? static_cast<std::size_t>(selected.panel)
                        : 0;
    const RunView& view = *m_views[of];
    SidePanel* side = m_workspace.views().side;
    const QString name = distinctTitles(m_views)[static_cast<qsizetype>(of)];
    if (m_side != m_views[of]) {
        m_side = m_views[of];
        side->setRun(view.run, view.figures, false, u"%1: %2"_s.arg(QChar(static_cast<char16_t>(u'A' + of))).arg(name));
    }
    side->setSelection(selected.valid() ? selected.span : noSpan);
}

void CompareController::show(const std::vector<RunRef>& refs, int step)
{
    if (refs.size() < 2) return;
    Question question;
    question.refs.assign(refs.begin(), refs.begin() + static_cast<std::ptrdiff_t>(std::min(refs.size(), mostRuns)));
    question.step = step;
    ask(question, static_cast<int>(question.refs.size()) - 1);
}

void CompareController::showPredicted(const RunRef& original, const RunRef& predicted, const RunRef& measured)
{
    Question question;
    question.refs = {original, predicted, measured};
    question.predicted = true;
    ask(question, 2);
}

QString CompareController::predictionText() const
{
    if (!m_question.predicted || m_comparisons.size() != 2) return {};
    const Nanos predicted = m_comparisons[0]->reportB.bubbles.makespan(),
                measured = m_comparisons[1]->reportB.bubbles.makespan();
    if (measured <= 0) return {};
    const Units units{m_views[2]->run->timeline->timeUnit(), m_views[2]->run->timeline->memoryUnit()};
    const double off = 100 * static_cast<double>(predicted - measured) / static_cast<double>(measured);
    return u"Predicted %1 (B), measured %2 (C): the prediction is off by %3 %."_s.arg(
        durationText(predicted, units), durationText(measured, units), signedFixed(off, 1));
}

std::vector<RunRef> CompareController::chosen() const
{
    if (m_workspace.shown().pending() && m_workspace.shown().isLatest(m_askedRequest)) return m_asked.refs;
    if (m_workspace.shown().mode() == Shown::Mode::Compare) return m_question.refs;
    return m_workspace.shown().ref().valid() ? std::vector<RunRef>{m_workspace.shown().ref()} : std::vector<RunRef>{};
}

void CompareController::add(const RunRef& ref)
{
    std::vector<RunRef> refs = chosen();
    const auto there = std::find(refs.begin(), refs.end(), ref);
    if (there == refs.end() && refs.size() == mostRuns) {
        m_workspace.banner()->showNote(u"At most four runs can be compared. Ctrl+click one of them to remove it."_s);
        return;
    }
    if (there == refs.end())
        refs.push_back(ref);
    else
        refs.erase(there);
    if (refs.size() == 1) {
        m_workspace.shown().showRun(refs.front());
    } else if (refs.size() > 1) {
        Question question = m_workspace.shown().mode() == Shown::Mode::Compare ? m_question : Question{};
        question.refs = refs;
        question.predicted = false;
        ask(question, static_cast<int>(refs.size()) - 1);
    }
}

void CompareController::swap()
{
    if (m_workspace.shown().mode() != Shown::Mode::Compare || m_views.size() < 2) return;
    Question question = m_question;
    std::swap(question.refs[0], question.refs[static_cast<std::size_t>(m_against)]);
    question.predicted = false;
    ask(question, m_against);
}

void CompareController::setAgainst(int index)
{
    if (m_workspace.shown().mode() != Shown::Mode::Compare || index < 1 || index >= static_cast<int>(m_views.size()) ||
        index == m_against)
        return;
    m_against = index;
    present(false);
}

void CompareController::setStep(int step)
{
    if (m_workspace.shown().mode() != Shown::Mode::Compare) return;
    Question question = m_question;
    question.step = step;
    ask(question, m_against);
}

void CompareController::alignAt(std::optional<Op> op)
{
    if (m_workspace.shown().mode() != Shown::Mode::Compare) return;
    Question question = m_question;
    question.alignedAt = op;
    ask(question, m_against);
}

void CompareController::ask(const Question& question, int against)
{
    const quint64 request = m_workspace.shown().request();
    m_asked = question;
    m_askedRequest = request;
    auto views = std::make_shared<std::vector<std::shared_ptr<const RunView>>>(question.refs.size());
    for (std::size_t i = 0; i < question.refs.size(); ++i)
        m_workspace.library()->request(
            question.refs[i], question.step,
            [this, request, views, i, question, against](Result<std::shared_ptr<const RunView>> view) {
                if (!m_workspace.shown().isLatest(request)) return;
                const bool closed =
                    view && !m_workspace.runs()->files().contains((*view)->ref.file); // while it was read
                if (!view || closed) {
                    m_workspace.shown().drop();
                    if (!closed) m_workspace.banner()->showError(QString(), view.error());
                    if (m_workspace.shown().mode() == Shown::Mode::Compare) present(false);
                    m_workspace.refreshActions();
                    return;
                }
                (*views)[i] = *view;
                if (std::all_of(views->begin(), views->end(), [](const auto& one) { return one != nullptr; }))
                    compareViews(question, request, against, *views);
            });
}

void CompareController::compareViews(const Question& question, quint64 request, int against,
                                     const std::vector<std::shared_ptr<const RunView>>& views)
{
    m_answering.start([views, alignedAt = question.alignedAt](
                          const std::stop_token& stop) { return answerOf(views, alignedAt, stop); },
                      [this, question, request, against, views](Result<Answer> answer) {
                          if (!m_workspace.shown().answered(request)) return;
                          if (!answer) {
                              m_workspace.banner()->showRefusal(u"these runs can't be compared"_s, answer.error());
                              if (m_workspace.shown().mode() == Shown::Mode::Compare) present(false);
                              m_workspace.refreshActions();
                              return;
                          }
                          m_question = question;
                          m_views = views;
                          m_comparisons = std::move(answer->comparisons);
                          m_panels = std::move(answer->panels);
                          m_against = std::clamp(against, 1, static_cast<int>(m_views.size()) - 1);
                          present(true);
                      });
}

void CompareController::present(bool fit)
{
    const auto other = static_cast<std::size_t>(m_against);
    const auto& comparison = m_comparisons[other - 1];
    if (fit) {
        emit m_workspace.shown().replacing();
        m_workspace.viewState()->clearSelection();
    }
    m_workspace.shown().presentCompared(m_views.front(), m_views[other], comparison);
    if (fit) m_workspace.views().timeline->setPanels(m_panels);
    std::vector<QString> unclaimed;
    for (const auto& one : m_comparisons)
        unclaimed.push_back(one->withinSpread  ? u"within the noise"_s
                            : one->tooFewSteps ? u"too few steps: noise unknown"_s
                                               : QString());
    m_difference->setUnclaimed(std::move(unclaimed));
    m_workspace.views().memory->setPanels({m_panels.front(), m_panels[other]},
                                          u"A"_s + QChar(static_cast<char16_t>(u'A' + other)));
    m_workspace.views().legend->setPanels(m_panels);
    m_workspace.shown().applyBudget();
    m_workspace.shown().tellDamage({m_views.front().get(), m_views[other].get()});
    int steps = m_views.front()->run->timeline->steps();
    for (const auto& view : m_views) steps = std::min(steps, view->run->timeline->steps());
    m_panel->setChoices(distinctTitles(m_views), m_against, m_question.alignedAt.has_value(), steps, m_question.step);
    m_panel->setAll(m_comparisons, predictionText());
    m_panel->setComparison(m_views.front()->run, m_views[other]->run, comparison);
    m_workspace.shown().setMode(Shown::Mode::Compare);
    std::vector<RunRef> refs;
    for (const auto& view : m_views) refs.push_back(view->ref);
    m_workspace.runs()->setMarks(std::move(refs));
    m_workspace.views().runs->setCurrent(m_views[other]->ref);
    if (fit) {
        m_workspace.shown().splitViews();
        m_workspace.viewState()->fitAll();
        m_workspace.viewState()->clearHistory();
    }
    m_side.reset();
    showSide();
    m_workspace.shown().ready();
}

QString CompareController::title() const
{
    QStringList names = distinctTitles(m_views);
    if (names.size() < 2) return names.join(QString());
    const QString last = names.takeLast();
    return u"%1 and %2"_s.arg(names.join(u", "_s), last);
}

QString CompareController::statusText() const
{
    const QString where = m_question.alignedAt
                              ? u"aligned at %1"_s.arg(QString::fromStdString(toText(*m_question.alignedAt)))
                              : u"aligned at the start of their steps"_s;
    return u"%1 runs %2"_s.arg(m_views.size()).arg(where);
}

void CompareController::toggle()
{
    if (m_workspace.shown().mode() == Shown::Mode::Compare) { // the button again: back to a single run
        if (m_workspace.shown().other()) m_workspace.shown().showRun(m_workspace.shown().other()->ref);
        return;
    }
    m_workspace.refreshActions(); // the button stays unchecked until there is something to compare
    choose();
}

void CompareController::choose()
{
    const auto refs = m_workspace.runs()->refs();
    if (refs.size() < 2) return;
    auto* dialog = new QDialog(m_workspace.window());
    dialog->setObjectName(u"chooseCompare"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(u"Compare runs"_s);
    auto* layout = new QGridLayout(dialog);
    layout->setContentsMargins(20, 18, 20, 16);
    layout->setSpacing(9);
    std::vector<QComboBox*> boxes;
    const int count = static_cast<int>(std::min(mostRuns, refs.size()));
    for (int i = 0; i < count; ++i) {
        auto* box = new QComboBox(dialog);
        if (i > 1) box->addItem(u"none"_s);
        for (const RunRef& ref : refs) {
            const RunInfo* info = m_workspace.runs()->info(ref);
            if (info == nullptr) continue;
            const QString file = m_workspace.runs()->indexOfFile(ref.file).data().toString();
            box->addItem(u"%1  (%2, run %3)"_s.arg(runTitle(*info), file).arg(ref.id),
                         QVariant::fromValue(static_cast<int>(&ref - refs.data())));
        }
        const QString letter(QChar(static_cast<char16_t>(u'A' + i)));
        auto* label = makeLabel(i == 0 ? u"A, the baseline"_s : letter, "secondary", dialog);
        label->setBuddy(box);
        box->setAccessibleName(i == 0 ? u"Run A, the baseline"_s : u"Run %1"_s.arg(letter));
        layout->addWidget(label, i, 0);
        layout->addWidget(box, i, 1);
        boxes.push_back(box);
    }
    const RunRef shown = m_workspace.shown().ref();
    const auto place = std::find(refs.begin(), refs.end(), shown);
    const int at = place == refs.end() ? 0 : static_cast<int>(place - refs.begin());
    // What is shown and its neighbour, the older of them first.
    int first = at, second = at + 1 < static_cast<int>(refs.size()) ? at + 1 : (at == 0 ? 1 : at - 1);
    const auto madeAt = [&](int place) {
        const RunInfo* info = m_workspace.runs()->info(refs[static_cast<std::size_t>(place)]);
        return info != nullptr ? info->createdUnixMs : 0;
    };
    if (madeAt(first) > madeAt(second) || (madeAt(first) == madeAt(second) && first > second)) std::swap(first, second);
    boxes[0]->setCurrentIndex(first);
    boxes[1]->setCurrentIndex(second);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, dialog);
    buttons->button(QDialogButtonBox::Ok)->setText(u"Compare"_s);
    buttons->button(QDialogButtonBox::Ok)->setObjectName(u"primary"_s);
    buttons->button(QDialogButtonBox::Ok)->setDefault(true);
    layout->addWidget(buttons, count, 0, 1, 2);
    connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, dialog, [this, dialog, refs, boxes] {
        std::vector<RunRef> chosen;
        for (const QComboBox* box : boxes)
            if (const QVariant index = box->currentData(); index.isValid())
                chosen.push_back(refs[static_cast<std::size_t>(index.toInt())]);
        dialog->accept();
        for (std::size_t i = 0; i < chosen.size(); ++i)
            if (std::find(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(i), chosen[i]) !=
                chosen.begin() + static_cast<std::ptrdiff_t>(i)) {
                m_workspace.banner()->showRefusal(u"two of them are the same run"_s, u"choose different ones"_s);
                return;
            }
        show(chosen);
    });
    dialog->open();
}

void CompareController::refresh()
{
    const bool comparing = m_workspace.shown().mode() == Shown::Mode::Compare;
    Actions& actions = m_workspace.actions();
    actions["alignAtOp"]->setEnabled(comparing);
    actions["alignAtOp"]->setChecked(comparing && m_question.alignedAt.has_value());
    actions["nextCompared"]->setEnabled(comparing && m_views.size() > 2);
    actions["setBaseline"]->setEnabled(m_workspace.shown().ref().valid() &&
                                       m_workspace.shown().mode() != Shown::Mode::Edit);
    actions["setBaseline"]->setChecked(m_baseline && m_workspace.shown().ref() == m_baseline->ref);
    if (!comparing) m_side.reset();
    if (m_workspace.shown().mode() == Shown::Mode::Empty && !comparing) {
        m_views.clear();
        m_panels.clear();
        m_comparisons.clear();
    }
    measureBaseline();
}

void CompareController::setBaseline(const RunRef& ref)
{
    m_reading.drop();
    m_comparing.drop(); // with another baseline
    m_measured = {};
    if (!ref.valid()) {
        m_baseline.reset();
        m_measure.reset();
        m_againstBaseline.reset();
        refresh();
        return;
    }
    m_workspace.library()->request(ref, -1, m_reading.expect([this](Result<std::shared_ptr<const RunView>> view) {
        if (!view) {
            m_workspace.banner()->showError(u"the baseline can't be read"_s, view.error());
            return;
        }
        m_baseline = *view;
        m_measure.reset();
        refresh();
    }));
}

void CompareController::measureBaseline()
{
    const bool wanted =
        m_baseline &&
        (m_workspace.shown().mode() == Shown::Mode::Run || m_workspace.shown().mode() == Shown::Mode::Compare) &&
        m_workspace.shown().view();
    m_strip->setVisible(wanted);
    if (!wanted) {
        m_workspace.views().side->setMeasure(nullptr);
        return;
    }
    const auto& beside = m_workspace.shown().mode() == Shown::Mode::Compare && m_workspace.shown().other()
                             ? m_workspace.shown().other()
                             : m_workspace.shown().view();
    const QString name =
        beside->ref == m_baseline->ref ? runTitle(m_baseline->run->info) : distinctTitles({m_baseline, beside}).front();
    // in a comparison: the compared run, so that its figures have a second measure
    const std::shared_ptr<const RunView> shown =
        m_workspace.shown().mode() == Shown::Mode::Compare && m_workspace.shown().other() ? m_workspace.shown().other()
                                                                                          : m_workspace.shown().view();
    const Units units{m_baseline->run->timeline->timeUnit(), m_baseline->run->timeline->memoryUnit()};
    if (shown->ref == m_baseline->ref && shown->step == m_baseline->step) {
        m_comparing.drop();
        m_measured = {};
        m_againstBaseline.reset();
        m_strip->setBaseline(name, nullptr, units, u"This is the baseline."_s);
        m_workspace.views().side->setMeasure(nullptr);
        return;
    }
    if (!m_measure) m_measure = std::make_shared<const FigureMeasure>(*m_baseline->run, m_baseline->figures, name);
    if (m_measured == shown->ref && m_measuredStep == shown->step) return;
    m_measured = shown->ref;
    m_measuredStep = shown->step;
    const bool one = m_workspace.shown().mode() == Shown::Mode::Run; // the strip has it of a comparison
    m_workspace.views().side->setMeasure(one ? m_measure : nullptr);
    m_comparing.start(
        [baseline = m_baseline, shown](const std::stop_token& stop) -> Result<std::shared_ptr<const Comparison>> {
            STAGEWRIGHT_TRY(auto comparison,
                            compareRuns(*baseline->run, *shown->run, baseline->step, shown->step, {{}, stop}));
            return std::make_shared<const Comparison>(std::move(comparison));
        },
        [this, name, units](Result<std::shared_ptr<const Comparison>> comparison) {
            m_againstBaseline = comparison ? *comparison : nullptr;
            if (m_workspace.shown().mode() == Shown::Mode::Run)
                m_workspace.views().side->setMeasure(m_measure, m_againstBaseline && !m_againstBaseline->shows());
            m_strip->setBaseline(name, m_againstBaseline, units,
                                 comparison ? QString() : QString::fromStdString(comparison.error().message));
        });
}

FeatureEntry compareFeature() { return featureEntry<CompareController>(); }

} // namespace stagewright
