// Random valid schedules, plain and in every other form of an op: simulated, written and read, trained with the same
// order and the same gradients as the one-rank replay.
#include <QTest>

#include "../schedules/random_schedules.h"
#include "engine/check/check.h"
#include "engine/training/training.h"
#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/text/csv.h"
#include "schedules/timeline/timeline_of.h"
#include "support/of_schedule.h"
#include "support/workloads.h"

using namespace stagewright;

namespace {

struct Form {
    const char* name;
    std::optional<test::Variation> variation;
};
constexpr Form forms[] = {{"plain", std::nullopt},
                          {"recomputed", test::Variation::Recomputed},
                          {"halved", test::Variation::Halved},
                          {"concatenated", test::Variation::Concatenated},
                          {"sliced", test::Variation::Sliced},
                          {"stepped", test::Variation::Stepped}};

Schedule scheduleFor(unsigned seed, const Form& form)
{
    Schedule schedule = test::randomSchedule(seed, true, true);
    return form.variation ? test::varied(std::move(schedule), *form.variation, seed) : schedule;
}

} // namespace

class TestRandomTrainings : public QObject {
    Q_OBJECT

private slots:
    void everyForm_data()
    {
        QTest::addColumn<int>("form");
        for (int i = 0; i < static_cast<int>(std::size(forms)); ++i) QTest::newRow(forms[i].name) << i;
    }

    void everyForm()
    {
        QFETCH(int, form);
        for (unsigned seed = 1; seed <= 150; ++seed) {
            const Schedule schedule = scheduleFor(seed, forms[form]);
            const Validation validation = validate(schedule);
            QVERIFY2(validation.valid(), validation.valid() ? "" : validation.faults[0].message.c_str());
            const auto timeline = simulatedTimeline(schedule, CostModel::uniform(schedule));
            QVERIFY2(timeline, timeline ? "" : timeline.error().message.c_str());
            QVERIFY2(*scheduleOf(**timeline, 0) == schedule, qPrintable(QString("seed %1").arg(seed)));
            const auto text = writeScheduleCsv(schedule);
            QVERIFY2(text, text ? "" : text.error().message.c_str());
            const auto back = readScheduleCsv(*text);
            QVERIFY2(back, back ? "" : back.error().message.c_str());
            QVERIFY2(*back == schedule, qPrintable(QString("seed %1").arg(seed)));
        }
        for (unsigned seed = 1; seed <= 8; ++seed) {
            const Schedule schedule = scheduleFor(seed, forms[form]);
            TrainingOptions options;
            options.workload = test::gpt({schedule.stages + 1, 8, 2, 6, 256});
            options.microbatchSize = 2;
            options.clock = seed % 2 == 0 ? ClockMode::Wall : ClockMode::Virtual;
            const auto result = test::checkOf(schedule, options, 2, {});
            QVERIFY2(result, result ? "" : result.error().message.c_str());
            QVERIFY2(result->passed,
                     qPrintable(QString("seed %1: %2").arg(seed).arg(QString::fromStdString(result->note))));
        }
    }
};

QTEST_GUILESS_MAIN(TestRandomTrainings)
#include "tst_random_trainings.moc"
