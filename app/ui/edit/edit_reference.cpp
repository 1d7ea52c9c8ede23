// Edit mode: recognising the order, the reference schedules, the ghosts of other orders, and recovery after a crash.
#include <algorithm>

#include <QDateTime>
#include <QFileInfo>
#include <QLocale>
#include <QVBoxLayout>

#include "app/ui/edit/edit_controller.h"
#include "app/ui/edit/recovery_bar.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/text/diff.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/run/simulated_run.h"
#include "widgets/edit/schedule_text.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/preferences/preferences.h"

namespace stagewright {
namespace {

// A replica's ops alone: gathers, reductions and optimizer steps of shared state may be in any schedule.
Schedule unshared(const Schedule& order)
{
    Schedule out = order.replicas > 1 ? replicaSchedule(order, 0) : order;
    const auto isShared = [](const Op& op) { return isCollective(op.kind); };
    if (out.placement.hasCopies() || std::none_of(out.order.begin(), out.order.end(), [&](const auto& row) {
            return std::any_of(row.begin(), row.end(), isShared);
        }))
        return out;
    out = withoutCollectives(out);
    for (auto& row : out.order)
        while (!row.empty() && isOptimizer(row.back().kind)) row.pop_back();
    return out;
}

constexpr int recognisePause = 300; // ms after the last change

QString titleOf(std::string_view name)
{
    auto info = findSchedule(name.substr(0, name.find_first_of(":,")));
    QString title = info ? QString::fromUtf8((*info)->title.data(), static_cast<qsizetype>((*info)->title.size()))
                         : QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
    if (const auto aside = title.indexOf(" ("_L1); aside > 0) title.truncate(aside);
    const auto rest = name.find_first_of(":,");
    if (rest != std::string_view::npos)
        title += u' ' + QString::fromUtf8(name.data() + rest + 1, static_cast<qsizetype>(name.size() - rest - 1));
    return title;
}

// The unit costs of a model with equal durations on all stages.
CostModel::UnitCosts unitsOf(const CostModel& costs, const Schedule& schedule)
{
    CostModel::UnitCosts out;
    const double chunks = schedule.ranks > 0 ? std::max(1.0, static_cast<double>(schedule.stages) / schedule.ranks) : 1;
    auto share = [&](OpKind kind) {
        return static_cast<double>(costs.duration(kind, 0, 0)) * chunks / static_cast<double>(rankShare);
    };
    out.forward = share(OpKind::Forward);
    out.inputGrad = share(OpKind::InputGrad);
    out.weightGrad = share(OpKind::WeightGrad);
    out.backward = share(OpKind::Backward);
    out.latency = static_cast<double>(costs.links.all.latency) / static_cast<double>(rankShare);
    if (!costs.memory.empty() && costs.memory.front().activation > 0)
        out.freedAtInput = static_cast<double>(costs.memory.front().freedAtInput) /
                           static_cast<double>(costs.memory.front().activation);
    return out;
}

} // namespace

void EditController::connectReference()
{
    m_recognise.setSingleShot(true);
    m_recognise.setInterval(recognisePause);
    connect(&m_recognise, &QTimer::timeout, this, &EditController::recogniseNow);
    connect(m_panel, &EditPanel::referenceChosen, this, &EditController::compareWith);
    Actions& actions = m_workspace.actions();
    for (const ActionId id : {"ghostOriginal", "ghostLibrary"})
        connect(actions[id], &QAction::toggled, this, [this, id](bool wanted) {
            const ActionId other = id == "ghostOriginal" ? "ghostLibrary" : "ghostOriginal";
            if (wanted) m_workspace.actions()[other]->setChecked(false); // one ghost at a time
            refreshGhost();
        });
    connect(&PreferenceStore::instance(), &PreferenceStore::changed, this, [this] {
        m_autosave->preferencesChanged();
        // switched on during an edit
        if (m_editor->active() && !(m_kept && *m_kept == m_editor->schedule())) keepSoon();
    });
    connect(m_autosave, &EditAutosave::failed, this,
            [this](const Error& error) { m_workspace.banner()->showError(QString(), error); });
}

void EditController::recogniseSoon()
{
    m_recognising.drop();
    m_recognise.start();
}

void EditController::recogniseNow()
{
    if (!m_editor->active()) return;
    if (!m_editor->valid()) { // a name would suggest that the order can run
        m_panel->setRecognised(m_editor->complete() ? u"unknown: it has a fault"_s : u"not complete yet"_s,
                               u"An order gets a name once it is complete and valid."_s);
        return;
    }
    struct Name {
        std::string known;
        std::optional<NearestSchedule> nearest;
    };
    m_recognising.start(
        [order = std::make_shared<const Schedule>(m_editor->schedule())] {
            const Schedule plain = unshared(*order);
            Name out{recognise(plain), std::nullopt};
            if (out.known.empty()) out.nearest = nearestSchedule(plain);
            return out;
        },
        [this](const Name& name) {
            if (!m_editor->active()) return;
            const Schedule& order = m_editor->schedule();
            const QString shape =
                u"%1 × %2"_s.arg(countText(order.ranks, u"1 rank"_s, u"%L1 ranks"_s),
                                 countText(order.microbatches, u"1 microbatch"_s, u"%L1 microbatches"_s));
            if (!name.known.empty()) {
                m_panel->setRecognised(titleOf(name.known), u"Every rank runs the order of %1 for %2. The name says "
                                                            "nothing about time or memory; see the figures."_s.arg(
                                                                titleOf(name.known), shape));
            } else if (name.nearest) {
                const auto away = name.nearest->diff.distance();
                m_panel->setRecognised(
                    u"%1 from %2"_s.arg(countText(away, u"1 op"_s, u"%L1 ops"_s), titleOf(name.nearest->name)),
                    u"No library schedule has this order for %1. The nearest is %2; the number of ops says how many "
                    "would have to be moved, removed or inserted."_s.arg(shape, titleOf(name.nearest->name)));
            } else {
                m_panel->setRecognised(u"custom"_s, u"No library schedule has this order for %1."_s.arg(shape));
            }
        });
}

void EditController::compareWith(const QString& name)
{
    m_against = {};
    m_against.name = name;
    m_againstPicture.reset();
    if (!name.isEmpty()) m_workspace.actions()["ghostLibrary"]->setChecked(true);
    makeReference();
}

void EditController::makeReference()
{
    m_referencing.drop();
    if (!m_editor->active() || m_against.name.isEmpty()) {
        m_against = {};
        m_againstPicture.reset();
        m_panel->setReference(m_against);
        m_workspace.actions()["ghostLibrary"]->setChecked(false);
        refreshGhost();
        refreshActions();
        return;
    }
    struct Made {
        EditFigures figures;
        std::shared_ptr<const TimelinePanel> panel;
    };
    const Schedule& original = m_editor->original();
    Shape shape(original.ranks, m_editor->schedule().microbatches, 0);
    m_referencing.start(
        [name = m_against.name.toStdString(), shape, original = std::make_shared<const Schedule>(original),
         costs = std::make_shared<const CostModel>(m_editor->costs())]() -> Result<Made> {
            STAGEWRIGHT_TRY(auto schedule, makeSchedule(name, shape));
            CostModel own = *costs;
            if (schedule.stages != original->stages) {
                if (costs->source != CostSource::Uniform)
                    return fail(ErrorCode::Usage,
                                "it has " + std::to_string(schedule.stages) + " stages, but the costs are for " +
                                    std::to_string(original->stages),
                                "choose a schedule with the same number");
                own = CostModel::uniform(schedule, unitsOf(*costs, *original));
            }
            STAGEWRIGHT_TRY(auto times, simulate(schedule, own));
            STAGEWRIGHT_TRY(auto timeline, timelineOf(schedule, times, own, TimelineParts::SpansOnly));
            PanelOptions options;
            options.step = 0;
            options.causes = options.pyramids = false;
            return Made{editFigures(schedule, times), makePanel(timeline, options)};
        },
        [this](const Result<Made>& made) {
            if (!m_editor->active()) return;
            m_against.title = titleOf(m_against.name.toStdString());
            m_against.fault.clear();
            m_againstPicture.reset();
            if (made) {
                m_against.figures = made->figures;
                m_againstPicture = made->panel;
            } else {
                m_against.fault =
                    QString::fromStdString(made.error().message) +
                    (made.error().remedy.empty() ? QString() : u"; "_s + QString::fromStdString(made.error().remedy));
            }
            m_panel->setReference(m_against);
            refreshGhost();
            refreshActions();
        });
}

void EditController::refreshGhost()
{
    if (m_dragging) return; // then it is the order before the drag
    const bool library = m_workspace.actions()["ghostLibrary"]->isChecked() && m_againstPicture;
    const bool original =
        m_workspace.actions()["ghostOriginal"]->isChecked() && m_editor->active() && m_editor->changed();
    m_overlay->setGhost(!m_editor->active() ? nullptr
                        : library           ? m_againstPicture
                        : original          ? m_originalPicture
                                            : nullptr);
}

void EditController::keepSoon()
{
    if (!m_source || !m_editor->changed() || m_keptElsewhere) {
        if (m_source) m_autosave->clear(); // nothing to lose
        return;
    }
    m_autosave->changed([this] {
        EditRecord record;
        record.when = QDateTime::currentDateTimeUtc().toString(Qt::ISODate);
        if (!m_source) return record;
        record.source = runTitle(m_source->run->info);
        record.file = m_source->ref.file;
        record.run = m_source->ref.id;
        record.changes = m_editor->undoStack()->index();
        record.original = m_editor->original();
        record.edited = m_editor->schedule();
        record.costs = m_editor->costs();
        return record;
    });
}

void EditController::offerRecovery()
{
    m_orphan = m_autosave->takeOrphan();
    if (!m_orphan) return;
    m_recovery = new RecoveryBar(m_workspace.window()->centralWidget());
    const EditRecord& record = m_orphan->record;
    const QDateTime when = QDateTime::fromString(record.when, Qt::ISODate).toLocalTime();
    const QString file =
        record.file.startsWith("sim:"_L1) ? u"not saved in a file"_s : QFileInfo(record.file).fileName();
    m_recovery->offer(
        u"The window ended while “%1” was being edited"_s.arg(record.source),
        u"%1; %2; last saved %3"_s.arg(file, record.changes == 1 ? u"1 change"_s : u"%1 changes"_s.arg(record.changes),
                                       QLocale().toString(when, QLocale::ShortFormat)));
    if (auto* column = qobject_cast<QVBoxLayout*>(m_workspace.window()->centralWidget()->layout()))
        column->insertWidget(0, m_recovery);
    connect(m_recovery, &RecoveryBar::recoverAsked, this, &EditController::recover);
    connect(m_recovery, &RecoveryBar::discardAsked, this, [this] {
        if (m_orphan) m_autosave->drop(*m_orphan);
        m_orphan.reset();
        m_recovery->hide();
        offerRecovery(); // another one
    });
    connect(m_recovery, &RecoveryBar::laterAsked, this, [this] {
        if (m_orphan) m_autosave->release(*m_orphan);
        m_orphan.reset();
        m_recovery->hide();
    });
}

// In its original run if that is unchanged; otherwise as a new run: the record has the original and the costs.
void EditController::recover()
{
    if (!m_orphan) return;
    const EditAutosave::Orphan orphan = std::move(*m_orphan);
    m_orphan.reset();
    m_recovery->hide();
    const EditRecord& record = orphan.record;
    const QString change = record.changes == 1 ? u"Recover 1 change"_s : u"Recover %1 changes"_s.arg(record.changes);
    editRunAgain({record.file, record.run}, record.original, change, record.edited, [this, orphan, change](bool done) {
        if (!done) {
            auto run = simulatedRun(orphan.record.original, orphan.record.costs);
            if (!run) {
                m_autosave->release(orphan);
                m_workspace.banner()->showError(u"the order can't be recovered"_s, run.error());
                return;
            }
            run->info.name = orphan.record.source.toStdString();
            editRun(std::move(*run), change, orphan.record.edited);
        }
        m_autosave->drop(orphan); // saved again under this window's name, within two seconds
    });
}

} // namespace stagewright
