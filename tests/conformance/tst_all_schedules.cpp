// Every schedule of the registry, over many shapes: valid, as fast and as large as its closed forms say, the laws, its
// page.
#include <QtTest>

#include <cmath>
#include <set>

#include <fmt/format.h>

#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/text/csv.h"
#include "schedules/text/diff.h"
#include "schedules/text/draw_text.h"
#include "schedules/timeline/timeline_of.h"

using namespace stagewright;

namespace {

// All shapes of up to 8 ranks that the schedule accepts.
template <typename Visit>
int eachShape(const ScheduleInfo& info, Visit&& visit)
{
    int accepted = 0;
    for (int p : {1, 2, 3, 4, 5, 8})
        for (int m : {1, 2, 3, 4, 6, 8, 9, 12, 16, 24})
            for (int v : {1, 2, 3, 4}) {
                if (info.fixedChunks > 0 && v != info.fixedChunks) continue;
                const Shape shape{p, m, v};
                const auto made = makeSchedule(info.name, shape);
                if (!made) continue;
                ++accepted;
                visit(shape, *made);
            }
    return accepted;
}

QByteArray label(const ScheduleInfo& info, const Shape& shape)
{
    return QString("%1 p=%2 m=%3 v=%4")
        .arg(QString::fromStdString(std::string(info.name)))
        .arg(shape.ranks)
        .arg(shape.microbatches)
        .arg(shape.chunks)
        .toUtf8();
}

bool pytorchHolds(const Schedule& s)
{
    if (s.placement.hasCopies() || s.weights != WeightRule::Synchronous) return false;
    for (const auto& ops : s.order)
        for (const Op& op : ops)
            if (op.count != 1 || op.slice >= 0 || op.half != 0 || op.kind > OpKind::WeightGrad) return false;
    return true;
}

// Simulates at four cost ratios and compares with the closed forms; their units divide evenly, so equality is exact but
// for the last bit. The number of makespans compared.
int meetsClosedForms(const std::string& name, const Shape& shape, const Schedule& s)
{
    int compared = 0;
    for (auto [f, i, w] : {std::tuple{1.0, 1.0, 1.0}, {2.0, 3.0, 1.0}, {3.0, 2.0, 2.0}, {2.0, 1.0, 1.0}}) {
        CostModel::UnitCosts units;
        units.forward = f;
        units.inputGrad = i;
        units.weightGrad = w;
        const auto result = simulate(s, CostModel::uniform(s, units));
        const auto form = closedFormOf(name, shape, f, i, w);
        if (!result || !form) qFatal("%s", name.c_str());
        const std::string label = fmt::format("{} p={} m={} v={} at {}, {}, {}", name, shape.ranks, shape.microbatches,
                                              shape.chunks, f, i, w);
        if (form->makespan >= 0) {
            ++compared;
            const double makespan = static_cast<double>(result->makespan) / rankShare;
            if (std::abs(makespan - form->makespan) >= 1e-9)
                QTest::qFail(
                    fmt::format("{}: makespan {}, by its closed form {}", label, makespan, form->makespan).c_str(),
                    __FILE__, __LINE__);
        }
        if (!form->peakActivation.empty() && form->peakActivation.size() != static_cast<std::size_t>(s.ranks))
            QTest::qFail((label + ": peaks not by rank").c_str(), __FILE__, __LINE__);
        for (std::size_t r = 0; r < form->peakActivation.size(); ++r) {
            const double peak = static_cast<double>(result->peakActivation[r]) / activationShare;
            if (std::abs(peak - form->peakActivation[r]) >= 1e-9)
                QTest::qFail(
                    fmt::format("{}: rank {} holds {}, by its closed form {}", label, r, peak, form->peakActivation[r])
                        .c_str(),
                    __FILE__, __LINE__);
        }
    }
    return compared;
}

// Every schedule at its defaults, and each alternative of each parameter.
std::vector<std::string> variants(const ScheduleInfo& info)
{
    std::vector<std::string> out{std::string(info.name)};
    for (const ScheduleParameter& parameter : info.parameters)
        for (const QString& choice :
             QString::fromUtf8(parameter.values.data(), static_cast<int>(parameter.values.size())).split('|'))
            if (choice != "real")
                out.push_back(std::string(info.name) + ":" + std::string(parameter.name) + "=" +
                              (choice == "whole" ? "2" : choice.toStdString()));
    return out;
}

// All values of all parameters with each other; a whole number is 2 or 3, a real one its default.
std::vector<std::string> combinations(const ScheduleInfo& info)
{
    std::vector<std::string> out{std::string(info.name)};
    for (const ScheduleParameter& parameter : info.parameters) {
        const QString values = QString::fromUtf8(parameter.values.data(), static_cast<int>(parameter.values.size()));
        const std::size_t before = out.size();
        for (const QString& value : QString(values).replace("whole", "2|3").split('|'))
            for (std::size_t i = 0; i < before && value != "real" && value.toStdString() != parameter.fallback &&
                                    parameter.name != "tokens";
                 ++i)
                out.push_back(out[i] + ":" + std::string(parameter.name) + "=" + value.toStdString());
    }
    return out;
}

QStringList namesOf(const std::set<std::string>& names)
{
    QStringList out;
    for (const std::string& name : names) out << QString::fromStdString(name);
    return out;
}

} // namespace

class TestAllSchedules : public QObject {
    Q_OBJECT
    // The paper gives no makespan.
    const QStringList withoutMakespan{"merak"};

private slots:
    void everyOne_data()
    {
        QTest::addColumn<int>("index");
        int index = 0;
        for (const ScheduleInfo& info : allSchedules()) QTest::newRow(std::string(info.name).c_str()) << index++;
        QVERIFY(index >= 4);
    }
    void everyOne()
    {
        QFETCH(int, index);
        const ScheduleInfo& info = allSchedules()[static_cast<std::size_t>(index)];
        int closedForms = 0;
        const int shapes = eachShape(info, [&](const Shape& shape, const Schedule& s) {
            const QByteArray name = label(info, shape);
            QCOMPARE(s.ranks, shape.ranks);
            QCOMPARE(s.microbatches, shape.microbatches);
            const Validation validation = validate(s);
            QVERIFY2(validation.valid(),
                     validation.valid() ? "" : (name + ": " + validation.faults[0].message.c_str()).constData());
            QVERIFY2(!recognise(s).empty(), name.constData());

            closedForms += meetsClosedForms(std::string(info.name), shape, s);
            // Law 1, with link latency so that times are not trivial.
            CostModel::UnitCosts units;
            units.latency = 0.3;
            const auto timeline = simulatedTimeline(s, CostModel::uniform(s, units));
            QVERIFY2(timeline.has_value(), name.constData());
            QVERIFY2(*scheduleOf(**timeline, 0) == s, name.constData());
            // Law 3 for CSV, both dialects; PyTorch's own form where it can hold the schedule.
            for (CsvDialect dialect : {CsvDialect::New, CsvDialect::Old}) {
                CsvOptions options;
                options.dialect = dialect;
                options.pytorch = pytorchHolds(s);
                const auto back = readScheduleCsv(*writeScheduleCsv(s, options), options);
                QVERIFY2(back && *back == s, name.constData());
            }
            const std::string drawing = drawTimeline(**timeline, 0, 120, false);
            QCOMPARE(std::count(drawing.begin(), drawing.end(), '\n'), static_cast<std::ptrdiff_t>(s.ranks) + 2);
        });
        QVERIFY(shapes >= 9);
        QVERIFY(closedForms >= 9 ||
                withoutMakespan.contains(QString::fromUtf8(info.name.data(), static_cast<int>(info.name.size()))));
    }
    // With one parameter set: valid, named by it, able to finish, the closed forms where there are any.
    void everyVariant()
    {
        int made = 0;
        int forms = 0;
        for (const ScheduleInfo& info : allSchedules())
            for (const std::string& name : variants(info))
                for (int p : {1, 2, 4, 8})
                    for (int m : {4, 8, 16, 32}) {
                        const auto s = makeSchedule(name, {p, m, 0});
                        if (!s) {
                            QVERIFY2(!s.error().remedy.empty(), s.error().message.c_str());
                            continue;
                        }
                        ++made;
                        const Validation validation = validate(*s);
                        QVERIFY2(validation.valid(),
                                 validation.valid() ? "" : (name + ": " + validation.faults[0].message).c_str());
                        const auto timeline = simulatedTimeline(*s, CostModel::uniform(*s));
                        QVERIFY2(timeline.has_value(), name.c_str());
                        QVERIFY2(*scheduleOf(**timeline, 0) == *s, name.c_str());
                        forms += meetsClosedForms(name, {p, m, 0}, *s);
                        const auto back = readScheduleCsv(*writeScheduleCsv(*s));
                        QVERIFY2(back && *back == *s, name.c_str());
                    }
        QVERIFY(made > 400);
        QVERIFY(forms > 1000);
    }
    // Constraints that are not met name the nearest shape that works, and that shape works.
    void nearestShapes()
    {
        const std::tuple<const char*, Shape, const char*> rows[] = {
            {"chimera", {3, 8}, "the nearest that work are 2 and 4 ranks"},
            {"chimera", {4, 7}, "the nearest that work are 6 and 8 microbatches"},
            {"chimera:join=doubling", {4, 6}, "the nearest that work are 4 and 8 microbatches"},
            {"chimera:f=3", {8, 8}, "the nearest below that works is f=2"},
            {"dualpipe", {5, 20}, "the nearest that work are 4 and 6 ranks"},
            {"dualpipe", {4, 6}, "the nearest that works is 8 microbatches"},
            {"dualpipe", {4, 9}, "the nearest that work are 8 and 10 microbatches"},
            {"dualpipev", {4, 7}, "the nearest that works is 8 microbatches"},
            {"pipedream-2bw", {4, 3}, "the nearest that works is 4 microbatches"},
            {"interleaved-zb", {4, 9, 2}, "the nearest that work are 8 and 10 microbatches"},
            {"interleaved-zb:group=3", {4, 8, 2}, "the nearest that work are 6 and 9 microbatches"},
            {"chimera:f=3", {7, 6}, "the nearest that work are 6 and 12 ranks"},
            {"chimera:f=3", {8, 6}, "the nearest below that works is f=2 with 4 microbatches"},
            {"dualpipe",
             {5, 9},
             "the nearest that work are 4 ranks with 8 microbatches and 6 ranks with 12 microbatches"},
            {"hanayo:waves=40000", {4, 8}, "the nearest that works is 256 waves"},
        };
        for (const auto& [name, shape, remedy] : rows) {
            const auto refused = makeSchedule(name, shape);
            QVERIFY2(!refused, name);
            QCOMPARE(refused.error().code, ErrorCode::Usage);
            QCOMPARE(QString::fromStdString(refused.error().remedy), QString(remedy));
        }
    }
    // Over a grid: what a refusal suggests is accepted.
    void suggestionsWork()
    {
        std::vector<std::string> names;
        for (const ScheduleInfo& info : allSchedules())
            if (!info.searches)
                for (const std::string& name : variants(info)) names.push_back(name);
        for (const char* name : {"chimera:f=3", "chimera:f=4:join=doubling", "chimera:f=6:join=halving",
                                 "interleaved-zb:group=1", "interleaved-zb:group=3", "interleaved-zb:group=5",
                                 "interleaved-1f1b:group=3", "interleaved-1f1b:group=7", "interleaved-zb:group=9:w=now",
                                 "terapipe:tokens=5000", "terapipe:slices=40000"})
            names.emplace_back(name);
        const QRegularExpression shape("(\\d+) ranks(?: with (\\d+) microbatches)?");
        const QRegularExpression numbers("nearest that works? (?:is|are) (?:(\\d+) and )?(\\d+) (ranks|microbatches)");
        const QRegularExpression parameter("((f|group|tokens|slices)=\\d+)");
        int refused = 0;
        int tried = 0;
        for (const std::string& name : names)
            for (int p = 1; p <= 12; ++p)
                for (int m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 18, 23, 25, 31})
                    for (int v : {0, 1}) {
                        const auto made = makeSchedule(name, {p, m, v});
                        if (made) continue;
                        ++refused;
                        const QString remedy = QString::fromStdString(made.error().remedy);
                        const QByteArray label = QString("%1 p=%2 m=%3 v=%4: %5")
                                                     .arg(QString::fromStdString(name))
                                                     .arg(p)
                                                     .arg(m)
                                                     .arg(v)
                                                     .arg(remedy)
                                                     .toUtf8();
                        const auto accepts = [&](const std::string& otherName, const Shape& other) {
                            ++tried;
                            const auto accepted = makeSchedule(otherName, other);
                            QVERIFY2(accepted.has_value(), label);
                        };
                        const int before = tried;
                        std::string suggested = name;
                        const auto given = parameter.match(remedy);
                        if (given.hasMatch()) {
                            const std::string key = given.captured(2).toStdString() + "=";
                            const std::size_t at = suggested.find(key);
                            const std::size_t end = suggested.find(':', at);
                            if (at != std::string::npos)
                                suggested.replace(at, end == std::string::npos ? end : end - at,
                                                  given.captured(1).toStdString());
                            else
                                accepts(name + ":" + given.captured(1).toStdString(), {p, m, v});
                        }
                        if (remedy.contains(" ranks with ")) {
                            for (auto match = shape.globalMatch(remedy); match.hasNext();) {
                                const auto one = match.next();
                                accepts(suggested, {one.captured(1).toInt(), one.captured(2).toInt(), v});
                            }
                        } else if (const auto found = numbers.match(remedy); found.hasMatch()) {
                            for (int i : {1, 2}) {
                                if (found.captured(i).isEmpty()) continue;
                                const int number = found.captured(i).toInt();
                                if (found.captured(3) == "ranks") accepts(suggested, {number, m, v});
                                if (found.captured(3) == "microbatches") accepts(suggested, {p, number, v});
                            }
                        } else if (given.hasMatch()) {
                            const auto with = QRegularExpression("with (\\d+) microbatches").match(remedy);
                            if (name.find("terapipe") == std::string::npos)
                                accepts(suggested, {p, with.hasMatch() ? with.captured(1).toInt() : m, v});
                            else
                                accepts("terapipe:slices=2", {p, 1, v});
                        } else if (remedy.startsWith("use 2 chunks")) {
                            accepts(name, {p, m, 2});
                        }
                        if (remedy.contains("1f1b for")) accepts("1f1b", {p, m, v});
                        QVERIFY2(tried > before, label);
                    }
        QVERIFY(refused > 1000);
    }
    // Every schedule under every combination of its parameters, through CSV: recognised under a name that makes the
    // same.
    void recognised_data()
    {
        QTest::addColumn<QString>("name");
        for (const ScheduleInfo& info : allSchedules())
            QTest::newRow(std::string(info.name).c_str())
                << QString::fromUtf8(info.name.data(), static_cast<int>(info.name.size()));
    }
    void recognised()
    {
        QFETCH(QString, name);
        std::set<std::string> recognisedAs;
        int made = 0;
        for (const auto& [p, m] : {std::pair{2, 4}, {4, 8}, {6, 12}, {8, 16}})
            for (const std::string& full : combinations(**findSchedule(name.toStdString()))) {
                // slow to make
                if (full.find("reorder") == std::string::npos && name.startsWith("v-") && p > 4) continue;
                const auto s = makeSchedule(full, {p, m, 0});
                if (!s) continue;
                ++made;
                const auto back = readScheduleCsv(*writeScheduleCsv(*s));
                QVERIFY2(back.has_value(), full.c_str());
                const std::string known = recognise(*back);
                QVERIFY2(!known.empty(), (full + " on " + std::to_string(p) + " ranks").c_str());
                const int chunks = s->stages / s->ranks;
                if (known.find(", ") == std::string::npos)
                    QVERIFY2(*makeSchedule(known, {p, m, chunks}) == *s, (full + " as " + known).c_str());
                recognisedAs.insert(known);
                // One op moved: the nearest is at most one op away, and names the first difference.
                Schedule mutated = *s;
                auto& row = mutated.order[1];
                std::size_t at = row.size() / 2;
                while (row[at] == row[at - 1] || mutated.isPaired(1, at) || mutated.isPaired(1, at - 1)) --at;
                std::swap(row[at], row[at - 1]);
                const auto nearest = nearestSchedule(mutated);
                QVERIFY2(nearest.has_value(), full.c_str());
                QVERIFY2(nearest->diff.distance() <= 1,
                         fmt::format("{} is nearest to {}, {} ops off", full, nearest->name, nearest->diff.distance())
                             .c_str());
                if (!nearest->diff.same()) QVERIFY(!nearest->diff.first.empty() || !nearest->diff.shape.empty());
            }
        QVERIFY(made >= 4);
        qInfo().noquote() << "recognised as"
                          << QStringList(recognisedAs.size() > 8
                                             ? QStringList{QString::number(recognisedAs.size()) + " names"}
                                             : namesOf(recognisedAs))
                                 .join("; ");
    }
    void recognisedWithParameters()
    {
        for (const char* name :
             {"bfs:order=descending", "2bp-1f1b:w=last", "zb-h2:optimizer=rank", "chimera:f=2", "hanayo:waves=2",
              "merak:variant=pre", "terapipe:base=1f1b", "chimera:f=2:join=doubling", "chimera:join=halving:sync=eager",
              "interleaved-zb:group=2:w=now", "v-half:reorder=no", "hanayo:waves=5", "terapipe:slices=7",
              "zb-auto:limit=1.5"})
            QCOMPARE(QString::fromStdString(recognise(*makeSchedule(name, {4, 8, 0}))), QString(name));
        QCOMPARE(QString::fromStdString(recognise(*makeSchedule("terapipe:tokens=32:base=1f1b", {4, 8, 0}))),
                 QString("terapipe:base=1f1b:slices=4, slices of 13,8,6,5"));
    }
    void pages()
    {
        std::set<std::string> names;
        for (const ScheduleInfo& info : allSchedules()) {
            for (std::string_view text :
                 {info.title, info.summary, info.paper, info.constraints, info.formulas, info.drawing})
                QVERIFY(!text.empty());
            for (const char* rank : {"rank 0", "rank 1", "rank 2", "rank 3"})
                QVERIFY(info.drawing.find(rank) != std::string_view::npos);
            QVERIFY(names.insert(std::string(info.name)).second);
            QVERIFY(info.fixedChunks == 0 || info.fixedChunks == info.defaultChunks);
            QCOMPARE((*findSchedule(info.name))->name, info.name);
        }
    }
    // The drawing on a schedule's page is what the simulator draws for four ranks and the drawn microbatches.
    void drawings()
    {
        for (const ScheduleInfo& info : allSchedules()) {
            const QStringList page =
                QString::fromUtf8(info.drawing.data(), static_cast<qsizetype>(info.drawing.size())).split('\n');
            const Schedule s = *makeSchedule(info.name, {4, info.drawnMicrobatches, 0});
            const int columns = static_cast<int>(page[0].size()) + 6; // "   57 %" follows the row
            const auto drawn = drawTimeline(**simulatedTimeline(s, CostModel::uniform(s)), 0, columns, false, false);
            const QStringList lines = QString::fromStdString(drawn).split('\n');
            for (int r = 0; r < 4; ++r) QCOMPARE(lines[r + 1].left(page[r].size()), page[r]);
        }
    }
    void names()
    {
        QCOMPARE((*findSchedule("ZB-H1"))->name, std::string_view("zb-h1"));
        QCOMPARE((*findSchedule("zb1p"))->name, std::string_view("zb-h1"));
        QCOMPARE((*findSchedule("ScheduleInterleaved1F1B"))->name, std::string_view("interleaved-1f1b"));
        QCOMPARE((*findSchedule("one_f_one_b"))->name, std::string_view("1f1b"));
        QCOMPARE((*findSchedule("ScheduleLoopedBFS"))->name, std::string_view("bfs"));
        QCOMPARE((*findSchedule("ScheduleZBVZeroBubble"))->name, std::string_view("zbv"));
        QCOMPARE((*findSchedule("ScheduleInterleavedZeroBubble"))->name, std::string_view("interleaved-zb"));
        QCOMPARE((*findSchedule("ScheduleDualPipeV"))->name, std::string_view("dualpipev"));
        QStringList all;
        for (const ScheduleInfo& info : allSchedules())
            all << QString::fromUtf8(info.name.data(), static_cast<int>(info.name.size()));
        const auto near = findSchedule("zb-h11");
        QVERIFY(!near);
        QCOMPARE(near.error().code, ErrorCode::Usage);
        QCOMPARE(QString::fromStdString(near.error().message),
                 QString("unknown schedule 'zb-h11'; known are %1").arg(all.join(", ")));
        QCOMPARE(QString::fromStdString(near.error().remedy), QString("did you mean zb-h1?"));
        QVERIFY(findSchedule("something-else-altogether").error().remedy.empty());
        QVERIFY(!findSchedule(""));
    }
    void shapesRefused()
    {
        const auto odd = makeSchedule("interleaved-1f1b", {4, 9, 2});
        QVERIFY(!odd);
        QCOMPARE(QString::fromStdString(odd.error().message),
                 QString("interleaved-1f1b: 9 microbatches do not divide into 2 groups on 4 ranks"));
        QCOMPARE(QString::fromStdString(odd.error().remedy),
                 QString("the nearest that work are 8 and 10 microbatches; or give the size of the groups, group=5"));
        const auto single = makeSchedule("interleaved-1f1b", {4, 8, 1});
        QVERIFY(!single);
        QVERIFY(single.error().remedy.find("1f1b") != std::string::npos);
        QCOMPARE(makeSchedule("interleaved-1f1b", {4, 8, 0})->stages, 8); // its own default
        QCOMPARE(makeSchedule("1f1b", {4, 8, 7})->stages, 4);             // chunks are fixed
        QVERIFY(!makeSchedule("1f1b", {0, 8, 0}));
        QVERIFY(!makeSchedule("1f1b", {4, 0, 0}));
        QVERIFY(!makeSchedule("1f1b", {4, 8, -1}));
        QVERIFY(!makeSchedule("1f1b", {70'000, 1, 0}));
        QVERIFY(!makeSchedule("gpipe", {60'000, 2'000'000'000, 0}));
    }
    void parameters()
    {
        const auto given = makeSchedule("gpipe:order=descending", {4, 8, 0});
        QVERIFY(!given);
        QCOMPARE(given.error().code, ErrorCode::Usage);
        QCOMPARE(QString::fromStdString(given.error().message),
                 QString("schedule gpipe: has no parameters, but 'order=descending' is given"));
        QCOMPARE(QString::fromStdString(makeSchedule("gpipe:x", {}).error().message),
                 QString("schedule gpipe: 'x' is not of the form key=value"));
    }
};

QTEST_APPLESS_MAIN(TestAllSchedules)
#include "tst_all_schedules.moc"
