// Ten thousand random changes to random library orders: nothing crashes, nothing is lost, undoing everything gives the
// start, redoing everything the end, and every order in between reads back from its text.
#include <random>

#include <QtTest>

#include "schedules/edit/edit_pattern.h"
#include "schedules/edit/edit_timing.h"
#include "schedules/library/registry.h"
#include "schedules/model/recompute.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/edit/text_sync.h"

using namespace stagewright;

class TestEditProperty : public QObject {
    Q_OBJECT

    static std::vector<OpPosition> some(std::mt19937& random, const Schedule& order)
    {
        std::vector<OpPosition> out;
        const auto all = allPositions(order);
        if (all.empty()) return out;
        const std::size_t count = 1 + random() % 6;
        for (std::size_t i = 0; i < count; ++i) out.push_back(all[random() % all.size()]);
        return out;
    }

    // One change, as the window makes it. The editor's answer says whether it was possible.
    static bool change(std::mt19937& random, ScheduleEditor& editor, OpPattern& pattern, int& copies)
    {
        const Schedule& order = editor.schedule();
        const auto chosen = some(random, order);
        const auto name = QStringLiteral("change");
        switch (random() % 18) {
        case 0:
        case 1:
            return !chosen.empty() &&
                   editor.move(chosen[0], static_cast<int>(
                                              random() % order.order[static_cast<std::size_t>(chosen[0].rank)].size()));
        case 2: return !chosen.empty() && editor.nudge(chosen[0], random() % 2 == 0 ? 1 : -1);
        case 3: return editor.apply(name, moveOps(order, chosen, static_cast<int>(random() % 9) - 4));
        case 4:
            return !chosen.empty() &&
                   editor.apply(name, moveToRank(order, chosen[0],
                                                 static_cast<int>(random() % static_cast<unsigned>(order.ranks)),
                                                 static_cast<int>(random() % 20)));
        case 5:
            return editor.apply(
                name, removeOps(order, {chosen.begin(),
                                        chosen.begin() +
                                            std::min<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(chosen.size()))}));
        case 6:
        case 7: {
            const auto& left = editor.unplaced();
            if (left.empty()) return false;
            const Op op = left[random() % left.size()];
            const int rank = order.placement.rankOf(op.stage, op.microbatch);
            return editor.apply(name, insertOps(order, rank, static_cast<int>(random() % 30), {op}));
        }
        case 8: return editor.apply(name, splitBackward(order, chosen));
        case 9: return editor.apply(name, mergeBackward(order, chosen));
        case 10: return editor.apply(name, insertRecompute(order, chosen));
        case 11: return chosen.size() > 1 && editor.apply(name, swapTwo(order, chosen[0], chosen[1]));
        case 12: return !chosen.empty() && editor.insertDelay(chosen[0].rank, chosen[0].position, rankShare / 2);
        case 13: return editor.apply(name, snapToEarliest(order, editor.costs(), editor.times(), chosen));
        case 14:
            return !chosen.empty() &&
                   editor.apply(name, moveCarrying(order, chosen[0],
                                                   static_cast<int>(
                                                       random() %
                                                       order.order[static_cast<std::size_t>(chosen[0].rank)].size())));
        case 15: {
            if (auto copied = copyPattern(order, editor.costs(), editor.times(), chosen)) {
                pattern = std::move(*copied);
                copies = 0;
            }
            auto stamped = stampPattern(order, editor.times(), pattern, ++copies);
            return editor.apply(name, stamped ? Result<Edited>(std::move(stamped->edited))
                                              : Result<Edited>(tl::unexpected(stamped.error())));
        }
        case 16:
            return !chosen.empty() &&
                   editor.apply(name, fillGap(order, editor.costs(), editor.times(),
                                              gapBefore(editor.times(), chosen[0].rank, chosen[0].position)));
        default: {
            if (random() % 3 == 0) return editor.apply(name, Edited{earliestOrder(order, editor.costs()), {}});
            auto next = withMicrobatches(order, editor.costs(),
                                         std::max(1, order.microbatches + static_cast<int>(random() % 3) - 1));
            return editor.apply(name, next ? Result<Edited>(Edited{std::move(*next), {}})
                                           : Result<Edited>(tl::unexpected(next.error())));
        }
        }
    }

private slots:
    void tenThousandChanges()
    {
        std::mt19937 random(20260101);
        const auto infos = allSchedules();
        int made = 0, tried = 0, names = 0;
        while (tried < 10000) {
            const ScheduleInfo& info = infos[random() % infos.size()];
            if (info.searches) continue;
            auto schedule = makeSchedule(info.name, Shape(2 * (1 + static_cast<int>(random() % 2)),
                                                          4 * (1 + static_cast<int>(random() % 2)), 0));
            if (!schedule) continue;
            ++names;
            CostModel::UnitCosts unit;
            unit.latency = random() % 2 == 0 ? 0 : 0.25;
            ScheduleEditor editor;
            editor.start(*schedule, CostModel::uniform(*schedule, unit));
            OpPattern pattern;
            int copies = 0;
            for (int i = 0; i < 250; ++i, ++tried) {
                if (!change(random, editor, pattern, copies)) continue;
                ++made;
                const Schedule& order = editor.schedule();
                // The picture is of this order.
                QCOMPARE(editor.times().start.size(), order.opCount());
                QVERIFY(editor.timeline() != nullptr);
                for (int r = 0; r < order.ranks; ++r)
                    for (const std::uint32_t at : static_cast<std::size_t>(r) < order.paired.size()
                                                      ? order.paired[static_cast<std::size_t>(r)]
                                                      : std::vector<std::uint32_t>())
                        QVERIFY(at + std::size_t{1} < order.order[static_cast<std::size_t>(r)].size());
                if (random() % 5 == 0) { // a preview leaves nothing behind
                    const Nanos makespan = editor.figures().makespan;
                    const Schedule before = order;
                    const auto one = some(random, order);
                    if (!one.empty())
                        editor.preview(
                            one[0],
                            static_cast<int>(random() % order.order[static_cast<std::size_t>(one[0].rank)].size()));
                    editor.cancelPreview();
                    QVERIFY(editor.schedule() == before);
                    QCOMPARE(editor.figures().makespan, makespan);
                }
                if (random() % 10 == 0) {
                    const auto lines = textLinesOf(order);
                    QVERIFY2(lines.has_value(), lines ? "" : lines.error().message.c_str());
                    const TypedOrder read = readTypedOrder(lines->join(QLatin1Char('\n')), order);
                    QVERIFY2(read.schedule.has_value(), read.schedule ? "" : read.schedule.error().message.c_str());
                    QVERIFY2(read.schedule->order == order.order, std::string(info.name).c_str());
                    if (editor.valid()) QVERIFY2(*read.schedule == order, std::string(info.name).c_str());
                }
            }
            const Schedule end = editor.schedule();
            while (editor.undoStack()->canUndo()) editor.undoStack()->undo();
            QVERIFY2(editor.schedule() == *schedule, std::string(info.name).c_str());
            QCOMPARE(editor.figures().makespan, editor.originalFigures().makespan);
            while (editor.undoStack()->canRedo()) editor.undoStack()->redo();
            QVERIFY2(editor.schedule() == end, std::string(info.name).c_str());
        }
        QVERIFY2(made > 4000, qPrintable(QString::number(made)));
        qInfo("%d changes made of %d tried, on %d orders", made, tried, names);
    }
};

QTEST_APPLESS_MAIN(TestEditProperty)
#include "tst_edit_property.moc"
