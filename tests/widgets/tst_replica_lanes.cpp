// Replicas in the timeline: lanes gather and reduce under a rank, hatched where exposed, hit by the pointer, with
// arrows and cards; the other replicas folded under their pipeline rank; ops dragged to places in lists that have
// collectives; the numbers of the page State.
#include <QtTest>

#include "schedules/edit/missing_collectives.h"
#include "schedules/library/registry.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"
#include "schedules/timeline/timeline_of.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/explore/state_view.h"
#include "widgets/record/record_setup.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/list_place.h"
#include "widgets/timeline/selection_overlay.h"
#include "widgets/timeline/span_card.h"
#include "widgets/timeline/timeline_painter.h"

using namespace stagewright;

namespace {

Schedule listsOf(ShardLevel level, GatherRule gather, ReduceRule reduce, int microbatches = 4)
{
    ShardRules rules;
    rules.gather = gather;
    rules.reduce = reduce;
    return addShardOps(makeSchedule("1f1b", Shape(2, microbatches)).value(), level, rules).value();
}

CostModel costsOf(const Schedule& schedule)
{
    CostModel costs = CostModel::uniform(schedule);
    costs.sharding.level = ShardLevel::Weights;
    costs.replicas = 4;
    costs.links.collectives = ResourceUse::Beside;
    for (int stage = 0; stage < schedule.stages; ++stage) {
        costs.setDuration(OpKind::Unshard, stage, rankShare);
        costs.setDuration(OpKind::ReduceGrad, stage, rankShare);
        costs.setDuration(OpKind::Optimizer, stage, rankShare / 2);
    }
    return costs;
}

std::shared_ptr<const TimelinePanel> panelOf(const Schedule& schedule)
{
    PanelOptions options;
    options.step = 0;
    return makePanel(simulatedTimeline(schedule, costsOf(schedule)).value(), options);
}

std::shared_ptr<const TimelinePanel> sharded()
{
    return panelOf(listsOf(ShardLevel::Weights, GatherRule::Microbatch, ReduceRule::Overlapped));
}

TimelineScene sceneOf(const std::shared_ptr<const TimelinePanel>& panel)
{
    TimelineScene scene;
    scene.panels = {panel};
    scene.size = QSizeF(1200, 420);
    scene.rows = layoutRows(std::make_shared<const RowPlan>(planRows(scene.panels, {})), rowMetrics(48, true), false);
    scene.axis = {{0, panel->duration}, gutterWidth, 1200 - gutterWidth - rightMargin};
    return scene;
}

SpanId spanOf(const TimelinePanel& panel, Lane lane, int rank, std::size_t at)
{
    const Track* track = panel.timeline->trackOf(rank, lane);
    return track == nullptr ? noSpan : track->begin + static_cast<SpanId>(at);
}

QImage painted(const TimelineScene& scene)
{
    QImage image(scene.size.toSize(), QImage::Format_RGB32);
    image.fill(Theme::light().canvas);
    QPainter painter(&image);
    paintFrame(painter, scene, Theme::light(), Detail::Exact);
    return image;
}

// The one step of a timeline several times, each so much later.
std::shared_ptr<const Timeline> repeated(const Timeline& timeline, int steps, Nanos period)
{
    TimelineBuilder builder(timeline.provenance(), std::string(timeline.clock()), timeline.ranks());
    builder.setUnits(timeline.timeUnit(), timeline.memoryUnit());
    builder.setSchedule(timeline.schedule());
    for (int step = 0; step < steps; ++step) {
        std::vector<SpanId> ids(timeline.spans().size(), noSpan);
        for (const Track& track : timeline.tracks())
            for (SpanId id = track.begin; id < track.end; ++id) {
                Span span = timeline.spans()[id];
                span.step = step;
                span.start += step * period;
                span.end += step * period;
                ids[id] = builder.addSpan(builder.addTrack(track.rank, track.lane, track.name), span);
            }
        for (const Edge& edge : timeline.edges())
            builder.addEdge(ids[edge.from], ids[edge.to], edge.kind, edge.arrival + step * period);
    }
    return builder.build().value();
}

int otherThan(const QImage& image, const QRectF& rect, const QColor& colour)
{
    int count = 0;
    for (int y = static_cast<int>(rect.top()) + 1; y < static_cast<int>(rect.bottom()) - 1; ++y)
        for (int x = static_cast<int>(rect.left()) + 1; x < static_cast<int>(rect.right()) - 1; ++x)
            count += image.pixelColor(x, y) != colour ? 1 : 0;
    return count;
}

} // namespace

class TestReplicaLanes : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() { loadFonts(); }

    void lanesUnderARank()
    {
        const auto panel = sharded();
        const PanelRank& rank = panel->ranks.front();
        QCOMPARE(rank.lanes.size(), std::size_t{2});
        QVERIFY(rank.lanes[0].lane == Lane::Gather && rank.lanes[1].lane == Lane::Reduce);
        QCOMPARE(rank.workLanes(), 2);
        QCOMPARE(rank.lanes[0].data.size(), std::size_t{8}); // F and B of four microbatches; releases take no time
        QVERIFY(!rank.lanes[0].exposed.empty());
        const TimelineScene scene = sceneOf(panel);
        QCOMPARE(scene.place(0).lanes, 2);
        const SpanId first = spanOf(*panel, Lane::Gather, 0, 0);
        const auto rect = scene.rectOf({0, first});
        QVERIFY(rect && rect->top() >= scene.rowTop(0) + scene.place(0).height);
        QCOMPARE(scene.spanAt(rect->center()).span, first);
        RowSettings folded;
        folded.lanes = false;
        QCOMPARE(planRows(scene.panels, folded).items.front().lanes, 0);
        Legend legend;
        legend.setPanels(scene.panels);
        QVERIFY(legend.accessibleDescription().contains(QStringLiteral("exposed")));
    }

    void exposedIsHatched()
    {
        const auto panel = sharded();
        const TimelineScene scene = sceneOf(panel);
        const QImage image = painted(scene);
        const PanelLane& lane = panel->ranks.front().lanes.front();
        const QColor plain = Theme::light().of(OpKind::Unshard).fill;
        const TimeSpan part = lane.exposed.front();
        const SpanId first = spanOf(*panel, Lane::Gather, 0, 0);
        const QRectF block = *scene.rectOf({0, first});
        const QRectF hatched(scene.axis.toX(part.begin), block.top(),
                             scene.axis.toX(part.end) - scene.axis.toX(part.begin), block.height());
        QVERIFY(hatched.width() > 10);
        QVERIFY(otherThan(image, hatched, plain) > hatched.width()); // lines
        // without knowledge of causes nothing is hatched
        auto bare = std::make_shared<TimelinePanel>(*panel);
        for (PanelRank& rank : bare->ranks)
            for (PanelLane& one : rank.lanes) one.exposed.clear();
        QVERIFY(otherThan(painted(sceneOf(bare)), hatched, plain) < otherThan(image, hatched, plain));
    }

    // Several steps: each hatched as it is alone.
    void exposedOverSeveralSteps()
    {
        constexpr int steps = 3;
        const auto alone = sharded();
        const Nanos period = alone->timeline->end() - alone->timeline->begin() + rankShare;
        const auto several = makePanel(repeated(*alone->timeline, steps, period));
        QCOMPARE(several->steps.size(), std::size_t{steps});
        QVERIFY(!several->bubbles);
        int lanes = 0;
        for (std::size_t rank = 0; rank < alone->ranks.size(); ++rank)
            for (std::size_t lane = 0; lane < alone->ranks[rank].lanes.size(); ++lane) {
                const auto &once = alone->ranks[rank].lanes[lane].exposed,
                           &all = several->ranks[rank].lanes[lane].exposed;
                QCOMPARE(all.size(), once.size() * steps);
                for (std::size_t i = 0; i < all.size(); ++i) {
                    const Nanos later = period * static_cast<Nanos>(i / once.size());
                    QCOMPARE(all[i].begin, once[i % once.size()].begin + later);
                    QCOMPARE(all[i].end, once[i % once.size()].end + later);
                }
                lanes += once.empty() ? 0 : 1;
            }
        QVERIFY(lanes > 1);
        PanelOptions plain;
        plain.causes = false;
        const auto withoutCauses = makePanel(several->timeline, plain);
        for (const PanelRank& rank : withoutCauses->ranks)
            for (const PanelLane& lane : rank.lanes) QVERIFY(lane.exposed.empty());
    }

    void cardsAndArrows()
    {
        const auto panel = sharded();
        const SpanId gather = spanOf(*panel, Lane::Gather, 0, 0);
        CauseCache causes;
        const CardText card = spanCard(*panel, gather, Theme::light(), causes, TimeOrigin::Step);
        QStringList names;
        for (const auto& row : card.rows) names << row.first + QLatin1Char('=') + row.second;
        QVERIFY2(names.join(QLatin1Char(';')).contains(QStringLiteral("Needed by=0F0")),
                 qPrintable(names.join(QLatin1Char(';'))));
        QVERIFY(names.join(QLatin1Char(';')).contains(QStringLiteral("Exposed=1")));
        const auto edges = panel->timeline->edgesFrom(gather);
        QCOMPARE(edges.size(), std::size_t{1});
        TimelineScene scene = sceneOf(panel);
        QImage before = painted(scene), after = before;
        scene.selected = {0, gather};
        QPainter painter(&after);
        SelectionOverlay(nullptr).paint(painter, scene, Theme::light());
        painter.end();
        const QRectF op = *scene.rectOf({0, edges.front().to});
        bool arrow = false;
        for (int x = static_cast<int>(op.left()) - 8; x < static_cast<int>(op.left()) + 4; ++x)
            for (int y = static_cast<int>(op.top()); y < static_cast<int>(op.bottom()); ++y)
                arrow = arrow || before.pixel(x, y) != after.pixel(x, y);
        QVERIFY(arrow);
    }

    void otherReplicasFold()
    {
        const Schedule one = makeSchedule("1f1b", Shape(2, 4)).value();
        const auto panel = panelOf(overReplicas(one, 3).value());
        QCOMPARE(panel->replicas, 3);
        QCOMPARE(panel->ranks[4].replica, 2);
        const RowPlan folded = planRows({panel}, {});
        QCOMPARE(folded.items.size(), std::size_t{4}); // rank 0, the others', rank 1, the others'
        QVERIFY(folded.items[0].kind == RowKind::Rank && folded.items[1].kind == RowKind::Group);
        QCOMPARE(folded.items[2].rankIndex, 1);
        QCOMPARE(folded.groups[0].front().title, QStringLiteral("replicas 1–2"));
        QCOMPARE(folded.groups[0].front().ranks, (std::vector<int>{2, 4}));
        RowSettings open;
        open.expanded = {2};
        QCOMPARE(planRows({panel}, open).items.size(), std::size_t{6});
        RowSettings none;
        none.grouping = Grouping::None;
        QCOMPARE(planRows({panel}, none).items.size(), std::size_t{6});
        QVERIFY(canGroup(*panel, Grouping::Replica) && !canGroup(*sharded(), Grouping::Replica));
        const auto two = panelOf(overReplicas(one, 2).value());
        QCOMPARE(planRows({two}, {}).groups[0].front().title, QStringLiteral("replica 1"));
        QVERIFY(!painted(sceneOf(panel)).isNull());
    }

    void placesInLists()
    {
        const Schedule schedule = listsOf(ShardLevel::Weights, GatherRule::Microbatch, ReduceRule::Overlapped);
        const auto panel = panelOf(schedule);
        for (int rank = 0; rank < 2; ++rank) {
            const auto& list = schedule.order[static_cast<std::size_t>(rank)];
            std::set<int> seen;
            for (const Lane lane : {Lane::Compute, Lane::Gather, Lane::Reduce}) {
                const Track* track = panel->timeline->trackOf(rank, lane);
                for (SpanId id = track->begin; id < track->end; ++id) {
                    const int place = panel->positionOf(id);
                    QVERIFY(place >= 0 && list[static_cast<std::size_t>(place)] == panel->timeline->spans()[id].op);
                    seen.insert(place);
                }
            }
            QCOMPARE(seen.size(), list.size());
        }
        // The second forward of rank 0 dropped where it is stays; before the first one, it goes to the list's start of
        // ops.
        const SpanId second = spanOf(*panel, Lane::Compute, 0, 1);
        const int place = panel->positionOf(second);
        const Span& span = panel->timeline->spans()[second];
        QCOMPARE(listPlaceAt(*panel, 0, panel->toAxis((span.start + span.end) / 2), second) >
                     panel->positionOf(spanOf(*panel, Lane::Compute, 0, 0)),
                 true);
        QCOMPARE(listPlaceAt(*panel, 0, 0, second), panel->positionOf(spanOf(*panel, Lane::Compute, 0, 0)));
        QVERIFY(place > 1);
        ScheduleEditor editor;
        editor.start(schedule, costsOf(schedule));
        for (SpanId id = 0; id < editor.timeline()->spans().size(); ++id) {
            const OpPosition at = editor.positionOf(id);
            if (!at.valid()) continue;
            QCOMPARE(editor.spanAt(at), id);
        }
        // A gather behind the op that needs it is explained.
        const OpPosition gather{0, 0};
        QCOMPARE(schedule.order[0][0].kind, OpKind::Unshard);
        QVERIFY(editor.move(gather, 1));
        QVERIFY(!editor.valid());
        const Fault& fault = editor.validation().faults.front();
        QVERIFY2(fault.message.find("sharded weights") != std::string::npos &&
                     fault.remedy.find("0UNSHARD") != std::string::npos,
                 (fault.message + "; " + fault.remedy).c_str());
        QVERIFY(!editor.faultSpans().empty());
        editor.undoStack()->undo();
        QVERIFY(editor.valid());
        // What was removed is found again, and put back it is the order as before.
        QVERIFY(missingCollectives(schedule).empty());
        for (const OpKind kind : {OpKind::Unshard, OpKind::ReduceGrad})
            for (int rank = 0; rank < 2; ++rank) {
                const auto& row = schedule.order[static_cast<std::size_t>(rank)];
                const auto at = std::find_if(row.begin(), row.end(), [&](const Op& op) { return op.kind == kind; });
                const OpPosition spot{rank, static_cast<int>(at - row.begin())};
                const Schedule without = removeOps(schedule, {spot})->schedule;
                const auto missing = missingCollectives(without);
                QCOMPARE(missing.size(), std::size_t{1});
                QCOMPARE(missing.front().op, *at);
                QCOMPARE(missing.front().at.rank, rank);
                const Schedule again =
                    insertOps(without, rank, missing.front().at.position, {missing.front().op})->schedule;
                QVERIFY(validate(again).valid());
                if (kind != OpKind::Unshard) continue;
                QVERIFY(!validate(without).valid());
                QCOMPARE(again.order, schedule.order);
            }
    }

    void statePage()
    {
        StateQuestion question;
        question.ranks = 4;
        question.microbatches = 8;
        question.replicas = 64;
        const std::vector<StateRow> rows = stateSurvey(question, {"1f1b", "gpipe", "no-such-schedule"});
        QCOMPARE(rows.size(), std::size_t{3});
        for (std::size_t i = 0; i < 2; ++i) {
            const auto state = [&](std::size_t level, MemoryCategory category) {
                return static_cast<double>(rows[i].cells[level].held[static_cast<std::size_t>(category)]);
            };
            for (const StateCell& cell : rows[i].cells) QVERIFY2(cell.good(), cell.error.c_str());
            for (std::size_t level = 1; level < 4; ++level)
                QVERIFY(rows[i].cells[level].peak() < rows[i].cells[0].peak());
            QCOMPARE(state(0, MemoryCategory::Optimizer), 6 * state(0, MemoryCategory::Weights)); // 12 bytes beside 2
            QVERIFY(std::abs(state(1, MemoryCategory::Optimizer) * 64 / state(0, MemoryCategory::Optimizer) - 1) <
                    0.001);
            QVERIFY(std::abs(state(3, MemoryCategory::Weights) * 64 / state(0, MemoryCategory::Weights) - 1) < 0.001);
            QVERIFY(state(3, MemoryCategory::Gathered) > 0);
        }
        QVERIFY(!rows[2].cells[0].good() && !rows[2].cells[0].error.empty());
        // a stage that shares more and holds more says what grew, and what would help
        StateRow more = rows[0];
        more.cells[2] = more.cells[1];
        more.cells[2].held[static_cast<std::size_t>(MemoryCategory::Buckets)] += Bytes{1} << 30;
        StateQuestion late = question;
        late.rules.reduce = ReduceRule::Late;
        const std::string why = whyMoreIsHeld(more, late);
        QVERIFY2(why.starts_with("ZeRO 2 holds more against ZeRO 1: ") && why.find("+1.00 GiB") != std::string::npos &&
                     why.find("reducing after each microbatch") != std::string::npos,
                 why.c_str());
        QVERIFY(stateText(more, 2, late).find("against ZeRO 1: ") != std::string::npos);
        late.rules.reduce = ReduceRule::Microbatch;
        QVERIFY(whyMoreIsHeld(more, late).find("reducing after each microbatch") == std::string::npos);
        StateView view;
        view.resize(900, 700);
        question.memory = static_cast<double>(rows[0].cells[1].peak()); // nothing shared does not fit
        view.setRows(std::make_shared<const std::vector<StateRow>>(rows), question);
        QVERIFY(rows[0].cells[0].over(question) && !rows[0].cells[1].over(question));
        QVERIFY(view.picture()->grid()->textOf(0).contains(QStringLiteral("does not fit")));
        QCOMPARE(view.picture()->grid()->accessibleDescription(), view.picture()->grid()->textOf(0));
        for (const Theme* theme : {&Theme::light(), &Theme::darkTheme()}) {
            view.setTheme(*theme);
            const QImage image = view.grab().toImage();
            std::set<QRgb> colours;
            for (int y = 0; y < image.height(); y += 3)
                for (int x = 0; x < image.width(); x += 3) colours.insert(image.pixel(x, y));
            QVERIFY(colours.size() > 12);
        }
        QTest::keyClick(view.picture()->grid(), Qt::Key_Down);
        QTest::keyClick(view.picture()->grid(), Qt::Key_Right);
        QVERIFY(view.picture()->row() == 1 && view.picture()->level() == 1);
        QSignalSpy opened(view.picture(), &StatePicture::activated);
        QCOMPARE(view.picture()->bars()->plot().title, std::string("Memory of the fullest rank: GPipe"));
        QTest::keyClick(view.picture()->grid(), Qt::Key_Return);
        QCOMPARE(opened.at(0).at(0).toString(), QStringLiteral("gpipe"));
        QSignalSpy asked(&view, &StateView::questionChanged);
        view.replicas()->setValue(5);
        QVERIFY(!asked.empty());
        QCOMPARE(view.question({}).replicas, 32);
    }

    void recordedReplicas()
    {
        Setup setup = usualRecording();
        QVERIFY(!recordArguments(setup, QStringLiteral("x")).contains(QStringLiteral("--replicas")));
        setup.schedules = {"1f1b"};
        setup.replicas = 2;
        setup.shard = "weights:shares=3/5,2/5";
        setup.gather = "microbatch";
        setup.reduce = "overlapped";
        QVERIFY(!firstFault(setup));
        const QString line = commandLine(setup, QStringLiteral("x.stagewright"));
        QVERIFY2(line.contains(QStringLiteral(
                     "--replicas 2 --shard weights:shares=3/5,2/5 --gather microbatch --reduce overlapped")),
                 qPrintable(line));
        QVERIFY(inWords(setup).contains(QStringLiteral("2 replicas")));
        setup.shard = "weights:shares=1/2,1/4,1/4";
        QCOMPARE(firstFault(setup)->field, QStringLiteral("shard"));
        setup.shard = "weights";
        setup.replicaBatch = "3,5,7";
        QCOMPARE(firstFault(setup)->field, QStringLiteral("replica_batch"));
        setup.replicaBatch.clear();
        setup.cut = "0,4";
        QCOMPARE(firstFault(setup)->field, QStringLiteral("cut")); // weights are shared
        setup.shard = "none";
        QVERIFY(!firstFault(setup));
        QVERIFY(commandLine(setup, QStringLiteral("x.stagewright")).contains(QStringLiteral("--cut 0,4")));
        setup.cut = "1,4";
        QCOMPARE(firstFault(setup)->field, QStringLiteral("cut"));
    }
};

QTEST_MAIN(TestReplicaLanes)
#include "tst_replica_lanes.moc"
