// What is sent to PyTorch and what comes back from it, without PyTorch: weights, schedules by version, job folders,
// lines of the driver.
#include <QtTest/QtTest>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "engine/layers/parameters.h"
#include "engine/saved/safetensors.h"
#include "engine/torch/initial_weights.h"
#include "engine/torch/torch_event.h"
#include "engine/torch/torch_job.h"
#include "schedules/library/registry.h"
#include "support/workloads.h"

using namespace stagewright;

namespace {

std::string bytesOf(const QString& path)
{
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) return {};
    return file.readAll().toStdString();
}

void write(const QString& path, const std::string& bytes)
{
    std::ofstream(path.toStdString(), std::ios::binary) << bytes;
}

std::string withHeader(const std::string& json, std::size_t numbers)
{
    const auto length = static_cast<std::uint64_t>(json.size());
    return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + json + std::string(numbers * 4, '\0');
}

Schedule made(const char* name, int ranks = 2, int microbatches = 4)
{
    return *makeSchedule(name, Shape{ranks, microbatches});
}

} // namespace

class TorchJobTest : public QObject {
    Q_OBJECT

private slots:
    void init() { QVERIFY(m_folder.isValid()); }

    void tensorsComeBack()
    {
        const std::string path = m_folder.filePath("some.safetensors").toStdString();
        const std::vector<TensorShape> shapes = {{"b", {2, 3}}, {"a \"quoted\"", {4}}, {"one", {}}};
        std::vector<float> numbers(11);
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.1F * static_cast<float>(i) - 0.3F;
        {
            auto writer = SafetensorsWriter::create(path, shapes);
            QVERIFY(writer);
            QVERIFY(writer->append(std::span(numbers).first(7))); // across a tensor's end
            QVERIFY(!writer->finish());
            QVERIFY(writer->append(std::span(numbers).subspan(7)));
            QVERIFY(!writer->append(std::span(numbers).first(1)));
            QVERIFY(writer->finish());
        }
        auto file = SafetensorsFile::open(path);
        QVERIFY(file);
        QCOMPARE(file->tensors().size(), shapes.size());
        QVERIFY(file->tensors() == shapes);
        QVERIFY(*file->read("b") == std::vector<float>(numbers.begin(), numbers.begin() + 6));
        QVERIFY(*file->read("a \"quoted\"") == std::vector<float>(numbers.begin() + 6, numbers.begin() + 10));
        QVERIFY(*file->read("one") == std::vector<float>(numbers.begin() + 10, numbers.end()));
        QCOMPARE(file->read("c").error().code, ErrorCode::Usage);
    }

    void anUnfinishedFileIsNotLeft()
    {
        const std::string path = m_folder.filePath("half.safetensors").toStdString();
        {
            auto writer = SafetensorsWriter::create(path, {{"a", {4}}});
            QVERIFY(writer);
            QVERIFY(std::filesystem::exists(path + ".part"));
        }
        QVERIFY(!std::filesystem::exists(path));
        QVERIFY(!std::filesystem::exists(path + ".part"));
    }

    void damagedFiles_data()
    {
        QTest::addColumn<QByteArray>("bytes");
        const auto row = [](const char* name, const std::string& bytes) {
            QTest::newRow(name) << QByteArray(bytes.data(), static_cast<qsizetype>(bytes.size()));
        };
        row("empty", "");
        row("short", "1234567");
        row("header beyond the end", withHeader("{}", 0).substr(0, 9));
        row("header of 2^63 bytes", std::string("\0\0\0\0\0\0\0\x80", 8) + "{}");
        row("no JSON", withHeader("{\"a\"", 4));
        row("a list", withHeader("[1,2]", 4));
        row("other type", withHeader(R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})", 1));
        row("beyond the end", withHeader(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 1));
        row("shape of another size", withHeader(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 2));
        row("backwards", withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 2));
        row("negative", withHeader(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 2));
        row("product overflows",
            withHeader(R"({"a":{"dtype":"F32","shape":[1073741824,1073741824,1073741824],"data_offsets":[0,0]}})", 2));
        row("no offsets", withHeader(R"({"a":{"dtype":"F32","shape":[1]}})", 1));
        row("numbers as text", withHeader(R"({"a":{"dtype":"F32","shape":["x"],"data_offsets":[0,4]}})", 1));
    }
    void damagedFiles()
    {
        QFETCH(const QByteArray, bytes);
        const QString path = m_folder.filePath("damaged.safetensors");
        write(path, bytes.toStdString());
        const auto file = SafetensorsFile::open(path.toStdString());
        QVERIFY(!file);
        QCOMPARE(file.error().code, ErrorCode::Unreadable);
        QVERIFY(QString::fromStdString(file.error().message).contains("damaged.safetensors"));
    }

    // They depend on names alone, not on how the layers are cut.
    void weightsAreTheEngines()
    {
        ModelConfig model;
        model.layers = 3;
        model.hidden = 16;
        model.heads = 2;
        model.sequence = 8;
        const std::string one = m_folder.filePath("one.safetensors").toStdString();
        const std::string three = m_folder.filePath("three.safetensors").toStdString();
        QVERIFY(writeInitialWeights(*test::gpt(model), *slicesOf(*test::gpt(model), 1), 7, one));
        QVERIFY(writeInitialWeights(*test::gpt(model), *slicesOf(*test::gpt(model), 3), 7, three));
        QCOMPARE(bytesOf(QString::fromStdString(one)), bytesOf(QString::fromStdString(three)));
        auto file = SafetensorsFile::open(one);
        QVERIFY(file);
        QCOMPARE(file->tensors().size(), std::size_t{2 + 3 * 12 + 3});
        std::vector<float> wanted(std::size_t{4 * 16 * 16});
        layers::fillNormal(7, "layer1.mlp.expand.weight", 0.02F, wanted);
        QVERIFY(*file->read("layer1.mlp.expand.weight") == wanted);
        QVERIFY(*file->read("layer2.norm2.gamma") == std::vector<float>(16, 1.0F));
        const auto head = std::find_if(file->tensors().begin(), file->tensors().end(),
                                       [](const TensorShape& tensor) { return tensor.name == "head.weight"; });
        QVERIFY(head != file->tensors().end() && head->shape == (std::vector<int>{256, 16}));
    }

    void versions()
    {
        QVERIFY((parseTorchVersion("2.6.0+debian") == TorchVersion{2, 6}));
        QVERIFY((parseTorchVersion("2.11") == TorchVersion{2, 11}));
        QVERIFY((TorchVersion{2, 10}) > (TorchVersion{2, 9}));
        for (const char* text : {"", "2", "2.", "two.six", ".6"}) QVERIFY2(!parseTorchVersion(text), text);
    }

    void whatAVersionCanRun()
    {
        const TorchVersion debian{2, 6};
        const auto plain = torchSchedule(made("1f1b"), std::nullopt, debian);
        QVERIFY(plain);
        QCOMPARE(plain->form, std::string("compute_only"));
        QVERIFY(plain->csv.find("SEND") == std::string::npos);
        const auto lowered = torchSchedule(made("1f1b"), Lowering{LoweringRule::EagerPost, 2, false}, debian);
        QVERIFY(lowered);
        QCOMPARE(lowered->form, std::string("compute_comms"));
        QVERIFY(lowered->csv.find("0SEND_F0") != std::string::npos);

        const auto pairs = torchSchedule(made("dualpipev"), std::nullopt, debian);
        QVERIFY(!pairs && pairs.error().message.find("need PyTorch 2.9, and this one is 2.6") != std::string::npos);
        QVERIFY(torchSchedule(made("dualpipev"), std::nullopt, torchWithPairs));
        QVERIFY(torchSchedule(serialised(made("dualpipev")), std::nullopt, debian));
        const Lowering collectives{LoweringRule::PyTorch, 0, true};
        const auto reduces = torchSchedule(made("1f1b"), collectives, torchWithPairs);
        QVERIFY(!reduces &&
                reduces.error().message.find("needs PyTorch 2.10, and this one is 2.9") != std::string::npos);
        QVERIFY(torchSchedule(made("1f1b"), collectives, torchWithReduce));

        const auto copies = torchSchedule(made("dualpipe"), std::nullopt, newestTorch);
        QVERIFY(!copies && copies.error().remedy.find("the nearest it can run") != std::string::npos);
        const auto stashed = torchSchedule(made("pipedream"), std::nullopt, newestTorch);
        QVERIFY(!stashed && stashed.error().code == ErrorCode::Invalid);
    }

    void aJobFolder()
    {
        TorchJob job;
        job.schedule = made("zbv");
        job.training.workload = test::gpt({4, 16, 2, 8, 256});
        job.training.stageLayers = {1, 1, 1, 1};
        QVERIFY(writeTorchJob(job, oldestTorch, m_folder.path().toStdString()));
        QCOMPARE(bytesOf(m_folder.filePath("driver.py")), torchDriverText());
        QCOMPARE(torchDriverText(), bytesOf(STAGEWRIGHT_BINARY_DIR "/../engine/driver.py"));
        QCOMPARE(bytesOf(m_folder.filePath("data.bin")).size(), Corpus::builtIn()->size());
        const QJsonObject object =
            QJsonDocument::fromJson(QByteArray::fromStdString(bytesOf(m_folder.filePath("job.json")))).object();
        QCOMPARE(object["backend"].toString(), QString("gloo"));
        QCOMPARE(object["slices"].toArray().size(), 4);
        QCOMPARE(object["slices"].toArray()[3].toObject()["first_layer"].toInt(), 3);
        QCOMPARE(object["optimizer"].toObject()["kind"].toString(), QString("adamw"));
        // it can be moved
        QVERIFY(!QString::fromStdString(bytesOf(m_folder.filePath("job.json"))).contains(m_folder.path()));
        job.training.stageLayers = {4, 0};
        QVERIFY(!writeTorchJob(job, oldestTorch, m_folder.path().toStdString()));

        const TorchRankCommand command = torchRankCommand("/some/python3", {1, 2, 1, 2, "", 4711});
        QVERIFY(command.arguments == (std::vector<std::string>{"/some/python3", "-u", "driver.py", "."}));
        const auto has = [&command](const char* name, const char* value) {
            return std::count(command.variables.begin(), command.variables.end(),
                              std::pair<std::string, std::string>(name, value)) == 1;
        };
        QVERIFY(has("RANK", "1") && has("WORLD_SIZE", "2") && has("MASTER_PORT", "4711") && has("USE_LIBUV", "0") &&
                has("MASTER_ADDR", "127.0.0.1") && has("GLOO_SOCKET_IFNAME", "lo"));
        const auto variables = torchRankCommand("/some/python3", {5, 8, 1, 4, "node1", 4711}).variables;
        const std::map<std::string, std::string> apart(variables.begin(), variables.end());
        QVERIFY(apart.at("RANK") == "5" && apart.at("LOCAL_RANK") == "1" && apart.at("LOCAL_WORLD_SIZE") == "4" &&
                apart.at("MASTER_ADDR") == "node1" && !apart.contains("GLOO_SOCKET_IFNAME"));
    }

    void modelFiles()
    {
        write(m_folder.filePath("model:1.py"), "");
        const std::string path = m_folder.filePath("model:1.py").toStdString();
        const auto parsed = parseModelFile(path + ":build");
        QVERIFY(parsed && parsed->first == path && parsed->second == "build");
        for (const std::string& text : {std::string("model.py"), std::string(":build"), path + ":",
                                        m_folder.filePath("none.py").toStdString() + ":build"})
            QVERIFY2(!parseModelFile(text), text.c_str());
    }

    void linesOfTheDriver()
    {
        const auto step =
            parseTorchEvent(R"({"event": "step", "rank": 1, "step": 3, "loss": 5.25, "step_time_ns": 1234})");
        QVERIFY(step && step->kind == TorchEvent::Kind::Step && step->rank == 1 && step->step == 3 &&
                step->loss == 5.25 && step->stepTime == 1234);
        const auto error =
            parseTorchEvent(R"({"event": "error", "rank": 0, "message": "x", "where": "in 1F2", "peer": true})");
        QVERIFY(error && error->peer && error->where == "in 1F2");
        const auto done = parseTorchEvent(R"({"event": "done", "rank": 0, "steps": 4, "traced": 2})");
        QVERIFY(done && done->kind == TorchEvent::Kind::Done && done->step == 4);
        const auto traced = parseTorchEvent(R"({"event": "traced", "rank": 1, "step": 6})");
        QVERIFY(traced && traced->kind == TorchEvent::Kind::Traced && traced->rank == 1 && traced->step == 6);
        const auto nan = parseTorchEvent(R"({"event": "step", "rank": "x", "step": 1.5, "loss": null})");
        QVERIFY(nan && std::isnan(nan->loss) && nan->step == 0);
        for (const char* line :
             {"", "loss 5", "{\"event\":", "{\"event\": 3}", "{\"event\": \"other\"}", "[]", "  {\"event\": \"beat\"}"})
            QVERIFY2(!parseTorchEvent(line), line);
    }

private:
    QTemporaryDir m_folder;
};

QTEST_APPLESS_MAIN(TorchJobTest)
#include "tst_torch_job.moc"
