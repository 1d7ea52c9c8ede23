// Damaged schedules: validation says what is wrong, where and what to do; nothing crashes or hangs on them, and every
// part of the program agrees on whether they can run.
#include <QtTest>

#include "mutated_schedules.h"
#include "schedules/execute/deadlock.h"
#include "schedules/execute/deadlock_text.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/library/variants.h"
#include "schedules/messages/lower.h"
#include "schedules/messages/messages.h"
#include "schedules/step/step_deadlock.h"
#include "schedules/text/csv.h"
#include "schedules/text/diff.h"
#include "schedules/text/draw_text.h"
#include "schedules/timeline/timeline_of.h"

using namespace stagewright;

namespace {

constexpr std::array<const char*, 6> everyRule{"just-in-time", "pytorch",     "eager-post",
                                               "eager-post:2", "rank-parity", "grouped"};

// What the tests are run on: the library with its variants, random schedules in all forms, and their lowered lists.
const std::vector<Schedule>& originals()
{
    static const std::vector<Schedule> all = [] {
        std::vector<Schedule> out;
        for (const std::string& name : everyVariant())
            if (auto made = makeOnNearShape(name, {2 + int(out.size() % 3), 4})) out.push_back(std::move(*made));
        for (unsigned seed = 0; seed < 40; ++seed) {
            out.push_back(test::randomSchedule(seed));
            out.push_back(test::varied(test::randomSchedule(seed), test::Variation(seed % 5), seed));
        }
        const std::size_t plain = out.size();
        for (std::size_t i = 0; i < plain; ++i)
            if (auto lowered = lower(out[i], *parseLowering(everyRule[i % everyRule.size()])))
                out.push_back(std::move(*lowered));
        return out;
    }();
    return all;
}

Channels channelsOf(unsigned n)
{
    Channels out;
    out.sends = n % 2 == 0 ? SendMode::Buffered : SendMode::Rendezvous;
    out.perDirection = int(n / 2 % 3);
    out.receives = n / 6 % 2 == 0 ? ReceiveMode::Blocking : ReceiveMode::Posted;
    return out;
}

} // namespace

class TestMutations : public QObject {
    Q_OBJECT

    // All reports about a damaged schedule are consistent. Returns whether it is valid.
    bool explained(const Schedule& s, const Channels& channels, const QByteArray& label)
    {
        const auto check = [&](bool holds, const std::string& what) {
            if (!holds) QTest::qFail(label + ": " + what.c_str() + "\n" + toText(s).c_str(), __FILE__, __LINE__);
            return holds;
        };
        const Validation validation = validate(s, channels);
        for (const Fault& fault : validation.faults) {
            check(!fault.message.empty() && !fault.remedy.empty(),
                  "a fault without a message or a remedy: " + fault.message);
            if (fault.kind != FaultKind::Shape) // the place
                check(fault.message.find("rank") != std::string::npos ||
                          fault.message.find("stage") != std::string::npos ||
                          fault.message.find("slices") != std::string::npos,
                      "no place: " + fault.message);
            if (fault.position < 0) continue;
            check(fault.rank >= 0 && std::size_t(fault.rank) < s.order.size() &&
                      std::size_t(fault.position) < s.order[std::size_t(fault.rank)].size() &&
                      s.order[std::size_t(fault.rank)][std::size_t(fault.position)] == fault.op,
                  "another op is there: " + fault.message);
            if (fault.otherPosition >= 0)
                check(s.order.at(std::size_t(fault.otherRank)).at(std::size_t(fault.otherPosition)) == fault.other,
                      "another op is at the other place: " + fault.message);
        }
        const auto costs = CostModel::uniform(s);
        const auto result = simulate(s, costs, channels);
        if (validation.valid())
            check(result.has_value(), "valid, but simulate says: " + (result ? "" : result.error().message));
        if (!result) check(!result.error().message.empty(), "simulate gives no reason");
        // Where two ops make the same, simulate takes the one that runs first, the others the first in the list.
        const bool doubled = std::any_of(validation.faults.begin(), validation.faults.end(),
                                         [](const Fault& fault) { return fault.kind == FaultKind::Duplicate; });
        if (result && !doubled)
            check(validation.cycle.empty(),
                  "a deadlock that ends: " + (validation.valid() ? "" : validation.faults.back().message));

        const auto deadlock = explainDeadlock(s, channels);
        if (deadlock) {
            if (!doubled) check(deadlock->hung() == !result.has_value(), "explainDeadlock and simulate differ");
            // With other faults present, validation takes the ops concerned as present, so it may find another cycle or
            // none.
            if (validation.faults.size() == 1 && validation.faults[0].kind == FaultKind::Deadlock)
                check(!deadlock->cycle.empty(), "validate finds a cycle, explainDeadlock none");
            if (!deadlock->cycle.empty())
                check(!validation.valid(), "explainDeadlock finds a cycle in a valid schedule");
            if (deadlock->hung()) {
                check(!describeDeadlock(*deadlock).empty() && !drawDeadlock(s, *deadlock, 80).empty(),
                      "no text of a deadlock");
                for (const BlockedRank& blocked : deadlock->blocked)
                    check(!blocked.sentence.empty(), "a rank without a sentence");
            }
            if (deadlock->fixed) check(validate(*deadlock->fixed, channels).valid(), "a fix that does not hold");
        } else {
            check(!validation.valid() && !deadlock.error().message.empty(), "explainDeadlock refuses a valid schedule");
        }
        for (const char* rule : everyRule) {
            const auto lowered = lower(s, *parseLowering(rule));
            if (validation.valid()) check(lowered.has_value(), std::string("valid, but not lowered: ") + rule);
            if (!lowered) check(!lowered.error().message.empty(), "lower gives no reason");
        }
        if (result) {
            const auto timeline = timelineOf(s, *result, costs);
            if (validation.valid()) check(timeline.has_value(), "valid, but has no timeline");
        }
        return validation.valid();
    }

private slots:
    // Every kind of damage on every original, several times.
    void singleDamage()
    {
        std::array<int, test::damageKinds> invalid{};
        unsigned seed = 0;
        for (const Schedule& s : originals())
            for (int what = 0; what < test::damageKinds; ++what) {
                Schedule broken = s;
                std::mt19937 random(++seed);
                if (!test::damage(broken, test::Damage(what), random)) continue;
                if (!explained(broken, channelsOf(seed), QByteArray::number(seed) + " " + s.name.c_str()))
                    ++invalid[std::size_t(what)];
                if (QTest::currentTestFailed()) return;
            }
        QVERIFY(seed > 3000);
        for (int what = 0; what < test::damageKinds; ++what)
            QVERIFY2(invalid[std::size_t(what)] > 20,
                     qPrintable(QString("damage %1: %2").arg(what).arg(invalid[std::size_t(what)])));
    }
    // Several at once.
    void severalDamages()
    {
        int invalid = 0;
        for (unsigned seed = 0; seed < 4000; ++seed) {
            const Schedule& s = originals()[seed % originals().size()];
            if (!explained(test::damaged(s, seed), channelsOf(seed), QByteArray::number(seed) + " " + s.name.c_str()))
                ++invalid;
            if (QTest::currentTestFailed()) return;
        }
        QVERIFY(invalid > 3000);
    }
    // What was removed, doubled or put on another rank is named.
    void removedAndDoubled()
    {
        for (const Schedule& s : originals()) {
            if (isLowered(s)) continue;
            std::mt19937 random(7);
            for (int n = 0; n < 8; ++n) {
                const std::size_t r = random() % s.order.size();
                if (s.order[r].empty()) continue;
                const std::size_t i = random() % s.order[r].size();
                const Op op = s.order[r][i];
                if (!isCompute(op.kind) || op.kind == OpKind::Recompute || op.count > 1) continue;
                Schedule without = s;
                without.paired.clear();
                without.order[r].erase(without.order[r].begin() + std::ptrdiff_t(i));
                const Validation lacks = validate(without);
                QVERIFY(!lacks.valid());
                QVERIFY2(std::any_of(lacks.faults.begin(), lacks.faults.end(),
                                     [&](const Fault& fault) {
                                         return fault.kind == FaultKind::Count && fault.op.stage == op.stage &&
                                                fault.op.microbatch == op.microbatch;
                                     }),
                         toText(op).c_str());
                Schedule twice = s;
                twice.paired.clear();
                twice.order[r].push_back(op);
                const Validation has = validate(twice);
                QVERIFY2(std::any_of(has.faults.begin(), has.faults.end(),
                                     [&](const Fault& fault) {
                                         return fault.kind == FaultKind::Duplicate && fault.op == op &&
                                                fault.rank == int(r) &&
                                                fault.position == int(twice.order[r].size()) - 1 &&
                                                fault.otherPosition == int(i);
                                     }),
                         toText(op).c_str());
            }
        }
    }
    // A send or receive with another peer.
    void wrongPeers()
    {
        int seen = 0;
        for (const Schedule& s : originals()) {
            if (!isLowered(s)) continue;
            for (std::size_t r = 0; r < s.order.size(); ++r)
                for (std::size_t i = 0; i < s.order[r].size(); ++i) {
                    if (!isMessage(s.order[r][i].kind) || (r + i) % 7 != 0) continue;
                    for (const int step : {-1, 1}) {
                        Schedule broken = s;
                        broken.order[r][i].stage = static_cast<std::uint16_t>(broken.order[r][i].stage + step);
                        const Validation validation = validate(broken);
                        QVERIFY2(!validation.valid(), toText(broken).c_str());
                        QVERIFY2(std::any_of(validation.faults.begin(), validation.faults.end(),
                                             [&](const Fault& fault) {
                                                 return fault.rank == int(r) && fault.position == int(i);
                                             }),
                                 toText(s.order[r][i]).c_str());
                        ++seen;
                    }
                }
        }
        QVERIFY(seen > 100);
    }
    // What comes from a file: the placement is inferred again; the nearest schedule and the difference are reported.
    void throughCsv()
    {
        int read = 0;
        for (unsigned seed = 0; seed < 1200; ++seed) {
            const Schedule& s = originals()[seed % originals().size()];
            const auto text = writeScheduleCsv(test::damaged(s, 50'000 + seed));
            if (!text) continue;
            const auto back = readScheduleCsv(*text);
            if (!back) {
                QVERIFY(!back.error().message.empty());
                continue;
            }
            ++read;
            explained(*back, channelsOf(seed), QByteArray::number(seed) + " " + s.name.c_str());
            if (QTest::currentTestFailed()) return;
            const ScheduleDiff diff = diffSchedules(s, *back);
            QVERIFY(diffSchedules(*back, *back).same());
            for (const RankDifference& difference : diff.first) QVERIFY(!describeFirst(difference).empty());
            if (seed % 4 == 0) {
                (void)recognise(*back);
                (void)nearestSchedule(*back);
            }
        }
        QVERIFY2(read > 600, qPrintable(QString::number(read)));
    }
};

QTEST_APPLESS_MAIN(TestMutations)
#include "tst_mutations.moc"
