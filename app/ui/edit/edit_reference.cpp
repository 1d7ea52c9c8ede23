#include "app/ui/edit/edit_reference.h"

#include <algorithm>

#include "app/ui/workspace/workspace.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/text/diff.h"
#include "schedules/timeline/timeline_of.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"

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

EditReference::EditReference(Workspace& workspace, ScheduleEditor* editor, EditOverlay* overlay, EditPanel* panel,
                             const EditDrag& drag, const EditPicture& picture)
    : QObject(overlay), m_workspace(workspace), m_editor(editor), m_overlay(overlay), m_panel(panel), m_drag(drag),
      m_picture(picture), m_recognising(workspace.jobs()), m_referencing(workspace.jobs())
{
    m_recognise.setSingleShot(true);
    m_recognise.setInterval(recognisePause);
    connect(&m_recognise, &QTimer::timeout, this, &EditReference::recogniseNow);
    connect(panel, &EditPanel::referenceChosen, this, &EditReference::compareWith);
    for (const ActionId id : {"ghostOriginal", "ghostLibrary"})
        connect(workspace.actions()[id], &QAction::toggled, this, [this, id](bool wanted) {
            const ActionId other = id == "ghostOriginal" ? "ghostLibrary" : "ghostOriginal";
            if (wanted) m_workspace.actions()[other]->setChecked(false); // one ghost at a time
            refreshGhost();
        });
}

void EditReference::stop()
{
    m_recognise.stop();
    m_recognising.drop();
    m_referencing.drop();
}

void EditReference::recogniseSoon()
{
    m_recognising.drop();
    m_recognise.start();
}

void EditReference::recogniseNow()
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

void EditReference::compareWith(const QString& name)
{
    m_against = {};
    m_against.name = name;
    m_againstPicture.reset();
    if (!name.isEmpty()) m_workspace.actions()["ghostLibrary"]->setChecked(true);
    make();
}

void EditReference::make()
{
    m_referencing.drop();
    if (!m_editor->active() || m_against.name.isEmpty()) {
        m_against = {};
        m_againstPicture.reset();
        m_panel->setReference(m_against);
        m_workspace.actions()["ghostLibrary"]->setChecked(false);
        refreshGhost();
        emit changed();
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
            emit changed();
        });
}

void EditReference::refreshGhost()
{
    if (m_drag.dragging()) return; // then it is the order before the drag
    const bool library = m_workspace.actions()["ghostLibrary"]->isChecked() && m_againstPicture;
    const bool original =
        m_workspace.actions()["ghostOriginal"]->isChecked() && m_editor->active() && m_editor->changed();
    m_overlay->setGhost(!m_editor->active() ? nullptr
                        : library           ? m_againstPicture
                        : original          ? m_picture.original()
                                            : nullptr);
}

} // namespace stagewright
