// Large JSON cut into events: windows, batches, long and damaged events.
#include <QtTest/QtTest>

#include <tuple>

#include "tests/traces/import_rig.h"
#include "traces/foreign/json_events.h"

using namespace stagewright;
using namespace stagewright::import_rig;

namespace {

// What is kept of a text, read in windows and batches of these sizes.
struct Kept {
    std::vector<std::tuple<Nanos, Nanos, std::string>> spans;
    std::int64_t events = 0, damaged = 0, repaired = 0;
    std::string error;
    bool operator==(const Kept&) const = default;
};

Kept keptOf(const std::string& text, const JsonEvents::Sizes& sizes)
{
    const auto source = byteSourceOf(text);
    const auto file = readJsonTrace(*source, "text_rank0.json", {}, {}, sizes);
    Kept kept;
    if (!file) {
        kept.error = file.error().message;
        return kept;
    }
    const ForeignRank& rank = file->ranks[0];
    for (const ForeignSpan& span : rank.annotations)
        kept.spans.emplace_back(span.start, span.end, rank.names[span.name]);
    kept.events = rank.events;
    kept.damaged = rank.damaged;
    kept.repaired = rank.repaired;
    return kept;
}

std::vector<std::string> eventsOf(const std::string& text, std::string* lastMember = nullptr,
                                  std::int64_t* damaged = nullptr, const JsonEvents::Sizes& sizes = {})
{
    const auto source = byteSourceOf(text);
    JsonEvents events(*source, {}, sizes);
    JsonEvents::Item item;
    std::vector<std::string> out;
    while (true) {
        const auto more = events.next(item);
        if (!more || !*more) break;
        for (std::size_t i = 0; i < item.events; ++i) out.emplace_back(events.event(i));
        if (item.member && lastMember != nullptr) *lastMember = item.key;
    }
    if (damaged != nullptr) *damaged = events.damaged();
    return out;
}

} // namespace

class TestJsonEvents : public QObject {
    Q_OBJECT

private slots:
    void eventsAreCutAsTheyStand()
    {
        const std::string a = quoted("{'name':'a \\' } ] {','args':{'list':[1,[2,{}]]}}");
        const std::string b = quoted("{'ph':'X','name':'\\\\'}");
        std::string member;
        const auto inObject = eventsOf("\xef\xbb\xbf {\"first\": \"}\", \"traceEvents\" : [ " + a + " ,\n" + b +
                                           " ] , \"baseTimeNanoseconds\": 12 }",
                                       &member);
        QCOMPARE(inObject, (std::vector<std::string>{a, b}));
        QCOMPARE(member, std::string("baseTimeNanoseconds"));
        QCOMPARE(eventsOf("[" + a + "," + b), (std::vector<std::string>{a, b})); // the bracket may be missing
        // Through every place of the window's edge.
        std::string many = "[";
        for (int i = 0; i < 60'000; ++i)
            many += (i == 0 ? "" : ",") + a + std::string(static_cast<std::size_t>(i % 7), ' ') + "," + b;
        std::int64_t damaged = 0;
        QCOMPARE(eventsOf(many + "]", nullptr, &damaged).size(), std::size_t{120'000});
        QCOMPARE(damaged, std::int64_t{0});
        // Batches are arrays of what they hold, and end with the event that reaches their size.
        const auto source = byteSourceOf("[" + a + " ,\n" + b + "," + a + ",," + b + " " + a + "]");
        JsonEvents events(*source, {}, {1 << 20, a.size() + 1});
        JsonEvents::Item item;
        std::vector<std::string> batches;
        while (*events.next(item)) batches.emplace_back(item.text);
        QCOMPARE(batches,
                 (std::vector<std::string>{"[" + a + " ,\n" + b + "]", "[" + a + "]", "[" + b + "]", "[" + a + "]"}));
    }

    // Whatever borders of windows and batches fall upon, the same is read.
    void bordersDoNotMatter()
    {
        const auto span = [](int at, const std::string& name, const std::string& more = {}) {
            return quoted("{'ph':'X','cat':'user_annotation','pid':1,'tid':1,'ts':" + std::to_string(at) +
                          ",'dur':2.5,'name':'") +
                   name + quoted("'") + more + "}";
        };
        const auto nested = [](std::size_t depth) {
            std::string text = ",\"args\":";
            for (std::size_t i = 0; i < depth; ++i) text += "{\"a\":[";
            for (std::size_t i = 0; i < depth; ++i) text += "]}";
            return text;
        };
        std::string text = "{\"schemaVersion\":1,\"traceEvents\":[";
        int at = 0;
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < 40; ++i)
                text += span(++at, "x" + std::string(static_cast<std::size_t>(i), 'y') + "\\\"}{") +
                        (i % 3 == 0 ? " , \n" : ",");
            text += span(++at, "nested", nested(300)) + ",";
            text += span(++at, "deep", nested(5000)) + ",";
            text += span(++at, "long" + std::string(70'000, 'z')) + ",";
            text += span(++at, "bad \xff\xc3( utf") + ",";
            text += span(++at, "line\nbreak") + ",";
            text += quoted("{'ph':'X','name':'no time','pid':1,'tid':1,'dur':1},");
            text += quoted("{'ph':'X','ts':1,,'name':'torn'},");
            text +=
                quoted("{'ph':'X','ts':7,'dur':1,'name':'two'}{'ph':'X','ts':8,'dur':1,'name':'without a comma'},,");
        }
        const std::string whole = text + span(++at, "last") + "],\"baseTimeNanoseconds\":5}";
        const Kept usual = keptOf(whole, {});
        QCOMPARE(usual.error, std::string());
        QCOMPARE(usual.spans.size(), std::size_t{3 * 47 + 1});
        QCOMPARE(usual.repaired, std::int64_t{6});
        QVERIFY(usual.damaged >= 6);
        QCOMPARE(std::get<2>(usual.spans.back()), std::string("last"));
        for (const JsonEvents::Sizes sizes :
             {JsonEvents::Sizes{16, 1}, JsonEvents::Sizes{61, 200}, JsonEvents::Sizes{1000, 64},
              JsonEvents::Sizes{4096, 1 << 20}, JsonEvents::Sizes{1 << 20, 1}})
            QVERIFY2(keptOf(whole, sizes) == usual, std::to_string(sizes.window).c_str());
        // Cut off anywhere: what was whole is there, and no more.
        std::size_t before = 0;
        for (std::size_t size = 30; size < 12'000; size += 89) {
            const Kept part = keptOf(whole.substr(0, size), {37, 150});
            QVERIFY(part == keptOf(whole.substr(0, size), {}));
            QVERIFY(part.spans.size() >= before);
            before = part.spans.size();
        }
        QVERIFY(before > 40);
    }

    // An event that is too long is left out wherever it starts, and so is one that never ends.
    void longEventsAreLeftOut()
    {
        const std::string small = quoted("{'ph':'X','name':'small','pid':1,'tid':1,'ts':5,'dur':1}");
        const std::string most = quoted("{'ph':'X','pid':1,'tid':1,'ts':6,'dur':1,'name':'") +
                                 std::string(JsonEvents::mostEventBytes - 100, 'm') + "\"}";
        const std::string over = quoted("{'ph':'X','pid':1,'tid':1,'ts':7,'dur':1,'name':'") +
                                 std::string(JsonEvents::mostEventBytes + (1 << 21), 'o') + "\"}";
        for (const JsonEvents::Sizes sizes : {JsonEvents::Sizes{}, JsonEvents::Sizes{5000, 300}}) {
            const Kept kept = keptOf("[" + small + "," + most + "," + over + "," + small + "]", sizes);
            QCOMPARE(kept.spans.size(), std::size_t{3});
            QCOMPARE(kept.damaged, std::int64_t{1});
            const Kept open = keptOf("[" + small + "," + over.substr(0, over.size() - 2), sizes);
            QCOMPARE(open.spans.size(), std::size_t{1});
            QCOMPARE(open.damaged, std::int64_t{1});
        }
    }

    void damageIsSteppedOver()
    {
        const std::string good =
            quoted("{'ph':'X','cat':'user_annotation','name':'PP:0F0','pid':1,'tid':1,'ts':1,'dur':2}");
        const auto readOf = [&](const std::string& bad) {
            auto file = readText("[" + good + "," + bad + "," + good + "," + good + "]");
            if (!file) return std::pair<std::size_t, std::int64_t>(0, -1);
            return std::pair(file->ranks[0].annotations.size(), file->ranks[0].damaged);
        };
        for (const std::string& bad :
             {quoted("{'ph':'X','name':'open,'ts':1}"), quoted("{'ph':'X','name':'no time'}"), std::string("17"),
              std::string("}"), quoted("{'ph':'X','ts':'x','dur':1}"), quoted("{'ph':'X','ts':1,'dur':-1}")}) {
            const auto [kept, damaged] = readOf(bad);
            QVERIFY2(kept == 3, bad.c_str());
            QVERIFY2(damaged >= 1, bad.c_str());
        }
        // bad characters in a name are replaced
        auto repaired = readText("[{\"ph\":\"X\",\"name\":\"a\nb\xff\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2}]");
        QVERIFY(repaired);
        QCOMPARE(repaired->ranks[0].repaired, std::int64_t{1});
        // a file cut off anywhere: never more than it contains, and the cut is reported
        const std::string whole = textOf(dataFile("gpu_rank4.json"));
        std::size_t before = 0;
        for (std::size_t size = 0; size < whole.size() - 200; size += 97) {
            const auto part = readText(whole.substr(0, size));
            if (!part) continue;
            const std::size_t kept = part->ranks[0].annotations.size() + part->ranks[0].device.size();
            QVERIFY(kept >= before);
            QVERIFY(!part->ranks[0].notes.empty());
            before = kept;
        }
        QVERIFY(before > 40);
    }

    void largeEventsAndManyDamagesEnd()
    {
        std::string text = "[{\"ph\":\"X\",\"name\":\"" + std::string(3 << 20, 'x') + "\",\"ts\":1,\"dur\":1}";
        text += quoted(",{'ph':'X','name':'small','pid':1,'tid':1,'ts':5,'dur':1}]");
        const auto file = readText(text);
        QVERIFY(file);
        QCOMPARE(file->ranks[0].annotations.size(), std::size_t{1});
        std::string deep = "[" + std::string(200'000, '[');
        QVERIFY(!readText(deep));
    }

    // A hundred places to nest something in, deeper than any stack: what is there is left out or read, and the event
    // beside it stays.
    void nestedInputs()
    {
        const std::vector<std::string> places{
            "{'distributedInfo':{'rank':0,'pg_config':[{'pg_name':'0','ranks':@}]},",
            "{'distributedInfo':{'rank':0,'pg_config':[{'pg_name':'0','pg_desc':@}]},",
            "{'distributedInfo':{'rank':0,'pg_config':[@]},",
            "{'distributedInfo':{'rank':@},",
            "{'distributedInfo':@,",
            "{'distributedInfo':{'backend':@},",
            "{'deviceProperties':[{'name':@}],",
            "{'deviceProperties':@,",
            "{'stagewright':{'run':@},",
            "{'otherData':{'generator':@},",
            "{'otherData':{'generator':'stagewright','run':@},",
            "{'traceName':@,",
            "{'schemaVersion':@,",
            "{'baseTimeNanoseconds':@,",
            "{'traceEvents':[{'ph':'C','name':'c','pid':1,'ts':1,'args':@},",
            "{'traceEvents':[{'ph':'C','name':'c','pid':1,'ts':1,'args':{'a':@}},",
            "{'traceEvents':[{'args':{'a':@},'ph':'C','name':'c','pid':1,'ts':1},",
            "{'traceEvents':[{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':1,'dur':1,'args':{'grid':@}},",
            "{'traceEvents':[{'ph':'X','cat':'cpu_op','name':'k','pid':0,'tid':7,'ts':1,'dur':1,'args':{'External "
            "id':3,'Input Dims':@}},",
            "{'traceEvents':[{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':1,'dur':1,'args':{'Process Group "
            "Name':'0','Process Group Ranks':@,'Collective name':'x'}},",
            "{'traceEvents':[{'ph':'X','cat':'kernel','name':@,'pid':0,'tid':7,'ts':1,'dur':1},",
            "{'traceEvents':[{'ph':'X','cat':@,'name':'k','pid':0,'tid':7,'ts':1,'dur':1},",
            "{'traceEvents':[{'ph':@},",
            "{'traceEvents':[{'ts':@,'ph':'X'},",
            "{'traceEvents':[@,"};
        const std::vector<std::pair<std::string, std::string>> nests{
            {"[", "]"}, {"{'ph':", "}"}, {"[{'name':", "}]"}, {"[1,[", "]]"}};
        int inputs = 0;
        for (const std::string& place : places)
            for (const auto& [open, close] : nests) {
                std::string nested;
                constexpr int depth = 100'000;
                for (int i = 0; i < depth; ++i) nested += open;
                nested += "1";
                for (int i = 0; i < depth; ++i) nested += close;
                std::string text = place;
                text.replace(text.find('@'), 1, nested);
                if (text.find("traceEvents") == std::string::npos) text += "'traceEvents':[";
                text += "{'ph':'X','cat':'user_annotation','name':'small','pid':1,'tid':1,'ts':5,'dur':1}]}";
                const auto file = readText(quoted(text));
                QVERIFY2(file.has_value(), place.c_str());
                QVERIFY2(file->ranks[0].annotations.size() == 1, place.c_str());
                ++inputs;
            }
        QCOMPARE(inputs, 100);
    }
};

QTEST_APPLESS_MAIN(TestJsonEvents)
#include "tst_json_events.moc"
