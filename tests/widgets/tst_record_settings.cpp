// Recording: what the form refuses, the arguments it builds, the protocol it reads from a child process.
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QProcess>
#include <QPushButton>
#include <QScrollArea>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>
#include <random>

#include "schedules/setup/keys.h"
#include "schedules/setup/prepare.h"
#include "tests/support/random_setups.h"
#include "widgets/record/record_dialog.h"
#include "widgets/record/record_process.h"
#include "widgets/record/record_setup.h"
#include "widgets/record/record_strip.h"
#include "widgets/record/training_devices.h"

using namespace stagewright;

class TestRecordSettings : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;

    QString script(const char* name, const QByteArray& body)
    {
        const QString path = m_dir.filePath(QString::fromLatin1(name));
        QFile file(path);
        [&] { QVERIFY(file.open(QIODevice::WriteOnly)); }();
        file.write("#!/bin/sh\n" + body);
        file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        return path;
    }

private slots:
    void refusesWhatCantBeRecorded_data()
    {
        QTest::addColumn<QString>("field");
        QTest::newRow("heads") << "heads";
        QTest::newRow("layers") << "layers";
        QTest::newRow("schedule") << "schedule";
        QTest::newRow("data") << "data";
        QTest::newRow("scheduleFile") << "scheduleFile";
        QTest::newRow("steps") << "steps";
        QTest::newRow("ranks") << "ranks";
        QTest::newRow("link") << "link";
        QTest::newRow("cluster") << "cluster";
        QTest::newRow("cluster too small") << "cluster";
        QTest::newRow("cluster and link") << "cluster";
        QTest::newRow("recompute") << "recompute";
        QTest::newRow("sequence") << "sequence";
    }
    void refusesWhatCantBeRecorded()
    {
        QFETCH(QString, field);
        Setup s = usualRecording();
        QVERIFY(!firstFault(s));
        ModelNumbers model;
        if (field == QLatin1String("heads")) model.heads = 3;
        if (field == QLatin1String("layers")) model.layers = 2;
        if (field == QLatin1String("sequence")) model.sequence = 1;
        s.model = model.text();
        if (field == QLatin1String("schedule")) s.schedules.clear();
        if (field == QLatin1String("data")) s.data = "/nowhere/text";
        if (field == QLatin1String("scheduleFile")) s.schedules = {"/nowhere/x.csv"};
        if (field == QLatin1String("steps")) s.steps = -1;
        if (field == QLatin1String("ranks")) s.ranks = 0;
        if (field == QLatin1String("link")) s.link = "fast";
        const QLatin1String row(QTest::currentDataTag());
        if (row == QLatin1String("cluster")) s.cluster = "4@nothing";
        if (row == QLatin1String("cluster too small")) s.cluster = "2@a100";
        if (row == QLatin1String("cluster and link")) s.cluster = "8@a100", s.link = "5us";
        if (field == QLatin1String("recompute")) s.recompute = "some";
        const auto fault = firstFault(s);
        QVERIFY(fault.has_value());
        QCOMPARE(fault->field, field);
        QVERIFY(!fault->message.isEmpty());
    }

    void argumentsNameEverything()
    {
        Setup s = usualRecording();
        s.link = "50us,10GB/s";
        s.clock = "virtual";
        const QStringList args = recordArguments(s, QStringLiteral("/tmp/a b.stagewright"));
        QCOMPARE(args.first(), QStringLiteral("record"));
        QCOMPARE(args[args.indexOf(QStringLiteral("--schedule")) + 1], QStringLiteral("1f1b,zb-h1"));
        QCOMPARE(args[args.indexOf(QStringLiteral("--model")) + 1],
                 QStringLiteral("layers=8,hidden=128,heads=4,seq=128"));
        QCOMPARE(args[args.indexOf(QStringLiteral("--clock")) + 1], QStringLiteral("virtual"));
        QCOMPARE(args[args.indexOf(QStringLiteral("-o")) + 1], QStringLiteral("/tmp/a b.stagewright"));
        QVERIFY(args.contains(QStringLiteral("--stdin-control")));
        s.schedules = {"/tmp/own.csv"};
        s.ranks = 8;
        const QStringList own = recordArguments(s, QStringLiteral("x"));
        QCOMPARE(own[own.indexOf(QStringLiteral("--schedule")) + 1], QStringLiteral("/tmp/own.csv"));
        QVERIFY(!own.contains(QStringLiteral("--ranks"))); // the file gives the number
        s.schedules.emplace_back("gpipe");
        QVERIFY(recordArguments(s, QStringLiteral("x")).contains(QStringLiteral("--ranks"))); // of the other one
        QVERIFY(commandLine(s, QStringLiteral("a b")).contains(QStringLiteral("'a b'")));
    }

    // Only what the engine and the place can honour is passed on.
    void engineAndPlace()
    {
        Setup s = usualRecording();
        s.processes = true;
        s.clock = "virtual";
        s.link = "50us";
        QVERIFY(commandLine(s, QStringLiteral("x")).contains(QStringLiteral("--processes")));
        s.engine = "torch";
        s.python = "python3";
        s.precision = "bf16";
        s.backend = "cuda";
        s.sharing = "queues";
        QString line = commandLine(s, QStringLiteral("x"));
        for (const char* yes : {"--engine torch", "--python python3", "--backend cuda"})
            QVERIFY2(line.contains(QLatin1String(yes)), qPrintable(line));
        for (const char* no : {"--processes", "--clock", "--link", "--precision", "--sharing"})
            QVERIFY2(!line.contains(QLatin1String(no)), no);
        QVERIFY(inWords(s).contains(QStringLiteral("over NCCL")));
        s.modelFile = m_dir.filePath(QStringLiteral("model.py")).toStdString() + ":build";
        QCOMPARE(firstFault(s)->field, QStringLiteral("model_file"));
        script("model.py", "");
        QVERIFY(!firstFault(s));
        s.model = "layers=1"; // belongs to the engine's own model
        QVERIFY(!firstFault(s));
        QVERIFY(!recordArguments(s, QStringLiteral("x")).contains(QStringLiteral("--model")));
        s.host = "node1";
        s.slurm = {"nodes=2", "time=1:00:00", "exclusive"};
        line = commandLine(s, QStringLiteral("x"));
        QVERIFY2(line.contains(QStringLiteral("--host node1 --slurm nodes=2 --slurm time=1:00:00 --slurm exclusive")),
                 qPrintable(line));
        QVERIFY(inWords(s).contains(QStringLiteral("In the Slurm queue of node1.")));
        QVERIFY(!firstFault(s));
        s.slurm = {"-N2"};
        QCOMPARE(firstFault(s)->field, QStringLiteral("slurm"));
        s.slurm.clear();
        QVERIFY(!firstFault(s));

        RecordDialog dialog;
        dialog.setBackends({{QStringLiteral("cuda"), QStringLiteral("GPUs (CUDA)")}});
        dialog.setProgram(QStringLiteral("/bin/true"));
        dialog.setDevices({{QStringLiteral("cuda"), {}, QStringLiteral("none here")}});
        dialog.setSetup(s); // before its host is known
        dialog.setHosts({QStringLiteral("node0"), QStringLiteral("node1")});
        QVERIFY2(dialog.faultText().isEmpty(), qPrintable(dialog.faultText())); // the GPUs are those over there
        QCOMPARE(dialog.setup().host, s.host);
        QVERIFY(dialog.fieldNamed(QStringLiteral("python"))->isVisibleTo(&dialog) &&
                !dialog.fieldNamed(QStringLiteral("clock"))->isVisibleTo(&dialog));
        QVERIFY(!dialog.fieldNamed(QStringLiteral("layers"))->isEnabled() &&
                !dialog.fieldNamed(QStringLiteral("slurm"))->isVisibleTo(&dialog));
        auto* queue = qobject_cast<QComboBox*>(dialog.fieldNamed(QStringLiteral("queue")));
        queue->setCurrentIndex(1);
        QCOMPARE(dialog.setup().slurm, std::vector<std::string>{"nodes=1"});
        dialog.setSetup(usualRecording());
        QVERIFY(!dialog.fieldNamed(QStringLiteral("python"))->isVisibleTo(&dialog) &&
                dialog.fieldNamed(QStringLiteral("clock"))->isVisibleTo(&dialog));
        QVERIFY(dialog.fieldNamed(QStringLiteral("layers"))->isEnabled());
    }

    // A job elsewhere: why it waits, that its connection is lost and back; leaving it stops nothing there.
    void followsAJob()
    {
        const QString program = script("far", R"(
[ "$*" = "hosts attach --progress jsonl --stdin-control --json -- node1-7" ] || { echo "called as $*" >&2; exit 9; }
echo '{"event":"hello","protocol":1}' >&2
echo '{"event":"job","job":"node1-7","state":"queued","detail":"waits for resources"}' >&2
read -r _ <"$(dirname "$0")/go"
echo '{"event":"job","job":"node1-7","state":"running"}' >&2
echo '{"event":"connection","job":"node1-7","lost":"host node1: the connection was lost"}' >&2
exec sleep 60
)");
        QCOMPARE(QProcess::execute(QStringLiteral("mkfifo"), {m_dir.filePath(QStringLiteral("go"))}), 0);
        RecordProcess process;
        process.follow(program, QStringLiteral("node1-7"), QStringLiteral("/r.stagewright"));
        QTRY_COMPARE(process.waitsFor(), QStringLiteral("waits for resources"));
        QVERIFY(process.elsewhere() && process.disconnected().isEmpty());
        QFile go(m_dir.filePath(QStringLiteral("go")));
        QVERIFY(go.open(QIODevice::WriteOnly));
        go.write("\n");
        go.close();
        QTRY_COMPARE(process.disconnected(), QStringLiteral("host node1: the connection was lost"));
        QVERIFY(process.waitsFor().isEmpty());
        process.leave();
        QTRY_COMPARE(process.state(), RecordProcess::State::Cancelled);
    }

    void settingsComeBackFromARun()
    {
        Run run;
        run.info.scheduleName = "zb-h1";
        run.info.ranks = 2;
        run.info.stages = 2;
        run.info.microbatches = 6;
        run.info.steps = 5;
        run.info.warmupSteps = 2;
        run.info.clock = "virtual";
        run.configuration = {{"model", "layers=4,hidden=32,heads=2,seq=16,vocabulary=256"},
                             {"microbatch_size", "3"},
                             {"seed", "17"},
                             {"optimizer", "sgd, learning rate 0.05, momentum 0.9, weight decay 0"},
                             {"stage_layers", "3,1"},
                             {"link", "50000 ns, 1000000 bytes/s"},
                             {"data", "built-in"}};
        const Setup s = setupOf(run);
        QCOMPARE(s.model, std::string("layers=4,hidden=32,heads=2,seq=16"));
        QCOMPARE(s.microbatchSize, 3);
        QCOMPARE(s.seed, std::int64_t(17));
        QCOMPARE(s.steps, 3);
        QCOMPARE(s.warmup, 2);
        QCOMPARE(s.clock, std::string("virtual"));
        QCOMPARE(s.optimizer, std::string("sgd"));
        QCOMPARE(s.learningRate, 0.05);
        QCOMPARE(s.stageLayers, (std::vector<int>{3, 1}));
        QCOMPARE(s.link, std::string("50000ns,1000000B/s"));
        QVERIFY(s.data.empty());
    }

    // A run is recorded again under what it was recorded under: each condition comes back as the option that sets it.
    void conditionsComeBackFromARun()
    {
        Setup asked;
        asked.perturb = {"rank=2:1.5", "jitter=0.05"};
        asked.speed = "1,0.5";
        asked.memoryLimit = "60%";
        asked.rankMemory = "64MB";
        asked.sends = "rendezvous";
        asked.receives = "posted";
        asked.lower = "batched";
        asked.channels = "2";
        asked.cluster = "8@a100:per-host=2";
        asked.recomputeLayers = "0-3";
        asked.momentum = 0.9;
        asked.weightDecay = 0.01;
        asked.clip = 0;
        asked.optimizer = "sgd";
        Run run; // as the recorder keeps it
        run.info.scheduleName = "1f1b";
        run.info.ranks = run.info.stages = 4;
        run.info.microbatches = 8;
        run.configuration = {{"perturb", "rank=2:1.5,jitter=0.05"},
                             {"speed", "1,0.5 (emulated)"},
                             {"memory_limit", "60%"},
                             {"rank_memory", "64MB"},
                             {"sends", "rendezvous"},
                             {"receives", "posted"},
                             {"lowering", "batched"},
                             {"channels", "2"},
                             {"link", "5000 ns, 1000000 bytes/s"}, // the cluster's
                             {"cluster", "8@a100:per-host=2"},
                             {"recomputed_layers", "0-3"},
                             {"optimizer", "sgd, learning rate 0.003, momentum 0.9, weight decay 0.01"},
                             {"clip_norm", "none"}};
        const Setup s = setupOf(run);
        for (const char* key :
             {"perturb", "speed", "memory_limit", "rank_memory", "sends", "receives", "lower", "channels", "cluster",
              "link", "recompute_layers", "momentum", "weight_decay", "clip", "optimizer"})
            QCOMPARE(textOf(s, *findSetupKey(key)), textOf(asked, *findSetupKey(key)));
        const QString words = conditionsOf(s);
        for (const char* part : {"disturbance rank=2:1.5,jitter=0.05", "memory cap 60%", "sends rendezvous"})
            QVERIFY2(words.contains(QLatin1StringView(part)), qPrintable(words));
        QVERIFY(conditionsOf(usualRecording()).isEmpty());
        QVERIFY(inWords(s).contains(words));
    }

    // The form has a field for each condition, says what is wrong with one, and passes all of them on.
    void conditionsHaveFields()
    {
        RecordDialog dialog;
        dialog.setProgram(QStringLiteral("/bin/true"));
        Setup s = usualRecording();
        s.perturb = {"rank=2:1.5"};
        s.memoryLimit = "60%";
        s.lower = "grouped";
        s.sends = "rendezvous";
        s.receives = "posted";
        s.channels = "1";
        s.link = "50us";
        dialog.setSetup(s);
        QVERIFY(dialog.setup() == s);
        QVERIFY2(dialog.faultText().isEmpty(), qPrintable(dialog.faultText()));
        for (const char* key : {"perturb", "link", "cluster", "memory_limit", "sends", "receives", "lower", "channels",
                                "speed", "stage_layers"}) {
            QVERIFY2(dialog.fieldNamed(QLatin1StringView(key)) != nullptr, key);
            QVERIFY2(!dialog.fieldNamed(QLatin1StringView(key))->accessibleName().isEmpty(), key);
        }
        auto* field = qobject_cast<QLineEdit*>(dialog.fieldNamed(QStringLiteral("perturb")));
        field->setText(QStringLiteral("rank=9:1.5"));
        QVERIFY2(dialog.faultText().contains(QStringLiteral("rank=9:1.5")), qPrintable(dialog.faultText()));
        QVERIFY(field->property("fault").toBool());
        field->clear();
        QVERIFY(dialog.faultText().isEmpty() && dialog.setup().perturb.empty());
    }

    void dialogPointsAtTheFault()
    {
        RecordDialog dialog;
        dialog.setProgram(QStringLiteral("/bin/true"));
        dialog.setTargets({QStringLiteral("/tmp/demo.stagewright")}, QStringLiteral("/tmp/new.stagewright"));
        auto* start = dialog.findChild<QPushButton*>(QStringLiteral("primary"));
        QVERIFY(start != nullptr);
        QVERIFY2(start->isEnabled(), qPrintable(dialog.faultText()));
        QVERIFY(!dialog.targetIsNew());
        auto* heads = qobject_cast<QSpinBox*>(dialog.fieldNamed(QStringLiteral("heads")));
        heads->setValue(5);
        QVERIFY(!start->isEnabled());
        QVERIFY(dialog.faultText().contains(QStringLiteral("5 heads")));
        QVERIFY(heads->property("fault").toBool());
        heads->setValue(4);
        QVERIFY(start->isEnabled());
        QVERIFY(!heads->property("fault").toBool());
        dialog.setProgram({});
        QVERIFY(!start->isEnabled());
        Setup s = usualRecording();
        s.model = "layers=8,hidden=256,heads=4,seq=128,vocab=512"; // the last one has no field
        s.seed = 99;
        s.perturb = {"rank=1:2", "jitter=0.05"}; // likewise
        dialog.setSetup(s);
        QVERIFY(dialog.setup() == s);
    }

    // What the form shows and passes on means the same: schedules, replicas and messages of random setups.
    void randomSetupsThroughTheForm()
    {
        std::mt19937 random(3);
        RecordDialog dialog;
        for (int i = 0; i < 200; ++i) {
            Setup setup = randomSetup(random);
            if (setup.gather == "batch") setup.gather.clear();
            setup.reduce = setup.reduce.substr(0, setup.reduce.find(':')); // the form has no field for buckets
            setup.model = ModelNumbers().text();
            setup.steps = 3;
            dialog.setSetup(setup);
            QVERIFY2(dialog.setup() == setup, qPrintable(commandLine(setup, QStringLiteral("x"))));
            std::vector<std::string> words;
            for (const QString& word : recordArguments(dialog.setup(), QStringLiteral("x")))
                words.push_back(word.toStdString());
            words.erase(words.begin());                                            // record
            words.erase(std::find(words.begin(), words.end(), "-o"), words.end()); // what is not of the setup
            const auto passed = withOptions({}, words);
            QVERIFY2(passed.has_value(), passed ? "" : passed.error().message.c_str());
            const auto lists = [](const Setup& of) -> Result<ReplicaLists> {
                STAGEWRIGHT_TRY(const auto chosen, chooseSchedule(of.schedules.front(), of, {}));
                return trainedLists(chosen->given(), of.schedules.front(), of, {}, {});
            };
            const auto a = lists(setup), b = lists(*passed);
            QCOMPARE(a.has_value(), b.has_value());
            if (a) QVERIFY(a->schedule == b->schedule && a->samples == b->samples && a->speeds == b->speeds);
        }
    }

    void devicesAsTheProgramTellsThem()
    {
        const QString program = script("devices", R"(
[ "$1 $2" = "devices --json" ] || exit 3
echo '{"devices":[{"backend":"cpu","name":"a processor","usable":true,"reason":null,"details":{}},{"backend":"cuda","name":"H","usable":true,"reason":null}]}'
)");
        QVector<TrainingDevice> devices;
        bool answered = false;
        QObject context;
        askDevices(program, &context, [&](const QVector<TrainingDevice>& found) {
            devices = found;
            answered = true;
        });
        QTRY_VERIFY_WITH_TIMEOUT(answered, 20000);
        QCOMPARE(devices.size(), 2);
        QCOMPARE(devices[1].name, QStringLiteral("H"));
        QVERIFY(devices[1].reason.isEmpty());
        QVERIFY(trainingDevicesIn("what?").isEmpty());
        QCOMPARE(
            trainingDevicesIn(R"({"devices":[{"backend":"cuda","usable":false,"reason":"no driver"}]})").front().reason,
            QStringLiteral("no driver"));
    }

    void gpusAreChosenWhereThereAreAny()
    {
        RecordDialog dialog;
        dialog.setBackends({{QStringLiteral("cuda"), QStringLiteral("GPUs (CUDA)")}});
        dialog.setProgram(QStringLiteral("/bin/true"));
        dialog.setTargets({}, QStringLiteral("/tmp/new.stagewright"));
        Setup s = usualRecording();
        s.clock = "wall";
        s.backend = "cuda";
        s.devices = {0, 1};
        s.precision = "tf32";
        s.sharing = "partitions";
        s.transport = "nccl";
        dialog.setSetup(s);
        QVERIFY(dialog.setup() == s);
        QVERIFY(dialog.faultText().isEmpty());
        QVERIFY(dialog.fieldNamed(QStringLiteral("sharing"))->isEnabled());
        QVERIFY(!dialog.fieldNamed(QStringLiteral("clock"))->isEnabled());
        auto* meaning = dialog.findChild<QLabel*>(QStringLiteral("sharingMeaning"));
        QVERIFY2(meaning->text().contains(QStringLiteral("memory bandwidth is still shared")),
                 qPrintable(meaning->text()));
        const QStringList arguments = recordArguments(s, QStringLiteral("out.stagewright"));
        QCOMPARE(arguments.at(arguments.indexOf(QStringLiteral("--backend")) + 1), QStringLiteral("cuda"));
        QCOMPARE(arguments.at(arguments.indexOf(QStringLiteral("--device")) + 1), QStringLiteral("0,1"));
        QCOMPARE(arguments.at(arguments.indexOf(QStringLiteral("--sharing")) + 1), QStringLiteral("partitions"));
        QCOMPARE(arguments.at(arguments.indexOf(QStringLiteral("--transport")) + 1), QStringLiteral("nccl"));
        QVERIFY(!arguments.contains(QStringLiteral("--clock"))); // sharing decides

        dialog.setDevices({{QStringLiteral("cpu"), QStringLiteral("p"), {}},
                           {QStringLiteral("cuda"), {}, QStringLiteral("no driver")}});
        QVERIFY2(dialog.faultText().contains(QStringLiteral("no driver")), qPrintable(dialog.faultText()));
        QVERIFY(dialog.fieldNamed(QStringLiteral("backend"))->property("fault").toBool());
        dialog.setDevices({{QStringLiteral("cuda"), QStringLiteral("H"), {}}});
        QVERIFY(dialog.faultText().isEmpty());
        auto* devices = qobject_cast<QLineEdit*>(dialog.fieldNamed(QStringLiteral("device")));
        devices->setText(QStringLiteral("first"));
        QVERIFY2(dialog.faultText().contains(QStringLiteral("first")), qPrintable(dialog.faultText()));
        qobject_cast<QComboBox*>(dialog.fieldNamed(QStringLiteral("backend")))->setCurrentIndex(0);
        QVERIFY(dialog.faultText().isEmpty()); // the processor needs no GPU
        QVERIFY(!devices->isEnabled());
        QVERIFY(!recordArguments(dialog.setup(), QStringLiteral("o")).contains(QStringLiteral("--device")));
    }

    // However many fields there are, rows of the list are seen, and every field can be reached.
    void rowsOfTheListStaySeen()
    {
        RecordDialog dialog;
        dialog.setProgram(QStringLiteral("/bin/true"));
        dialog.setTargets({}, QStringLiteral("/tmp/new.stagewright"));
        Setup s = usualRecording();
        s.replicas = 2;
        s.shard = "weights:by=layer";
        s.cut = "0,4";
        s.replicaBatch = "3,5";
        s.schedules = {"1f1b"};
        dialog.setSetup(s);
        const QString words = inWords(s);
        QVERIFY2(words.contains(QStringLiteral("2 replicas")) && words.contains(QStringLiteral("share its weights")) &&
                     words.contains(QStringLiteral("whole layers")),
                 qPrintable(words));
        QVERIFY2(words.contains(QStringLiteral("3 and 5")) &&
                     words.contains(QStringLiteral("back to layers 0 and 4")) &&
                     words.contains(QStringLiteral("not synchronous")),
                 qPrintable(words));
        s.shard = "weights:shares=3/5,2/5";
        QVERIFY2(inWords(s).contains(QStringLiteral("3/5 and 2/5")), qPrintable(inWords(s)));
        dialog.show();
        dialog.resize(1000, 640);
        QVERIFY(QTest::qWaitForWindowExposed(&dialog));
        auto* list = qobject_cast<QListWidget*>(dialog.fieldNamed(QStringLiteral("schedule")));
        QVERIFY(list != nullptr);
        QTRY_VERIFY2(list->viewport()->height() >= 4 * list->sizeHintForRow(0),
                     qPrintable(QStringLiteral("%1 px, a row %2; dialog %3")
                                    .arg(list->viewport()->height())
                                    .arg(list->sizeHintForRow(0))
                                    .arg(dialog.height())));
        QWidget* last = dialog.fieldNamed(QStringLiteral("cut"));
        last->setFocus();
        auto* fields = dialog.findChild<QScrollArea*>(QStringLiteral("recordFields"));
        QVERIFY(fields != nullptr);
        fields->ensureWidgetVisible(last);
        QVERIFY(!last->visibleRegion().isEmpty());
    }

    void theProcessorTakesBf16()
    {
        RecordDialog dialog;
        dialog.setBackends({{QStringLiteral("cuda"), QStringLiteral("GPUs (CUDA)")}});
        dialog.setProgram(QStringLiteral("/bin/true"));
        dialog.setTargets({}, QStringLiteral("/tmp/new.stagewright"));
        Setup s = usualRecording();
        s.precision = "bf16";
        dialog.setSetup(s);
        QVERIFY(dialog.setup() == s);
        QVERIFY(dialog.fieldNamed(QStringLiteral("precision"))->isEnabled());
        QVERIFY(dialog.fieldNamed(QStringLiteral("clock"))->isEnabled());
        const QStringList arguments = recordArguments(s, QStringLiteral("out.stagewright"));
        QVERIFY(!arguments.contains(QStringLiteral("--backend")));
        QCOMPARE(arguments.at(arguments.indexOf(QStringLiteral("--precision")) + 1), QStringLiteral("bf16"));
        auto* box = qobject_cast<QComboBox*>(dialog.fieldNamed(QStringLiteral("precision")));
        const int tf32 = box->findData(QStringLiteral("tf32"));
        QVERIFY(!box->model()->flags(box->model()->index(tf32, 0)).testFlag(Qt::ItemIsEnabled)); // GPUs only
        s.precision = "tf32";
        QVERIFY(!recordArguments(s, QStringLiteral("o")).contains(QStringLiteral("--precision")));
        qobject_cast<QComboBox*>(dialog.fieldNamed(QStringLiteral("backend")))->setCurrentIndex(1);
        QVERIFY(box->model()->flags(box->model()->index(tf32, 0)).testFlag(Qt::ItemIsEnabled));
    }

    void readsTheProtocol()
    {
        const QString program = script("ok", R"(
echo '{"event":"hello","protocol":1,"version":"0.1.0","verb":"record"}' >&2
echo '{"event":"run","run":1,"schedule":"1f1b","file":"f","clock":"virtual"}' >&2
echo '{"event":"something-new","x":1}' >&2
printf '{"event":"progress","what":"step","done":1,"total":2,"schedule":"1f1b","loss":5.5,' >&2
printf '"step_time_ns":1000}\n' >&2
echo '{"event":"progress","what":"closing the run","done":1,"total":4}' >&2
echo '{"event":"progress","what":"step","done":2,"total":2,"schedule":"1f1b","loss":5.25,"step_time_ns":900,"devices":[{"name":"GPU 0","used_bytes":3221225472,"total_bytes":6442450944,"busy":0.5},{"name":"GPU 1","used_bytes":1,"total_bytes":2,"busy":null}]}' >&2
echo '{"event":"done","file":"f","runs":[1]}' >&2
echo '{"runs":[]}'
)");
        RecordProcess process;
        RecordStrip strip(&process);
        QString load; // of the strip, while it is shown
        bool closes = false;
        connect(&process, &RecordProcess::progressed, &strip, [&] {
            for (const QLabel* label : strip.findChildren<QLabel*>())
                closes = closes || label->text().startsWith(QStringLiteral("Closing the run: 25"));
            if (const QString text = strip.findChild<QLabel*>(QStringLiteral("deviceLoad"))->text(); !text.isEmpty())
                load = text;
        });
        QSignalSpy finished(&process, &RecordProcess::finished);
        process.start(program, usualRecording(), QStringLiteral("f"));
        QVERIFY(finished.wait(10000));
        QCOMPARE(process.state(), RecordProcess::State::Finished);
        QCOMPARE(process.runs().size(), 1);
        QCOMPARE(process.done(), 2);
        QCOMPARE(process.total(), 2);
        QCOMPARE(process.schedules().size(), 1);
        QCOMPARE(process.schedules().first().losses, (QList<double>{5.5, 5.25}));
        QCOMPARE(process.finishedRuns(), (QList<qint64>{1}));
        QVERIFY(closes);
        QCOMPARE(load, QStringLiteral("GPU 0: 3.00 GiB of 6.00 GiB, 50 % busy   GPU 1: 1 B of 2 B"));
        QCOMPARE(process.devices().size(), 2);
        QCOMPARE(process.devices()[0].usedBytes, qint64(3221225472));
        QCOMPARE(process.devices()[0].busy, 0.5);
        QCOMPARE(process.devices()[1].busy, -1.0);
        QCOMPARE(process.result().trimmed(), QByteArray("{\"runs\":[]}"));
    }

    void tellsWhatTheChildSaid()
    {
        RecordProcess process;
        QSignalSpy finished(&process, &RecordProcess::finished);
        process.start(script("fails", "echo '{\"event\":\"error\",\"code\":5,\"message\":\"disk "
                                      "full\",\"remedy\":\"free some\"}' >&2\nexit 5\n"),
                      usualRecording(), QStringLiteral("f"));
        QVERIFY(finished.wait(10000));
        QCOMPARE(process.state(), RecordProcess::State::Failed);
        QCOMPARE(process.errorMessage(), QStringLiteral("disk full"));
        QCOMPARE(process.errorRemedy(), QStringLiteral("free some"));

        process.start(script("mute", "echo 'segmentation of words' >&2\nexit 3\n"), usualRecording(),
                      QStringLiteral("f"));
        QVERIFY(finished.wait(10000));
        QCOMPARE(process.state(), RecordProcess::State::Failed);
        QVERIFY(process.errorMessage().contains(QStringLiteral("exit code 3")));
        QVERIFY(process.errorMessage().contains(QStringLiteral("segmentation of words")));

        process.start(QStringLiteral("/nowhere/stagewright"), usualRecording(), QStringLiteral("f"));
        QTRY_COMPARE_WITH_TIMEOUT(process.state(), RecordProcess::State::Failed, 5000);
        QVERIFY(!process.errorRemedy().isEmpty());
    }

    void cancelClosesStandardInput()
    {
        RecordProcess process;
        QSignalSpy finished(&process, &RecordProcess::finished);
        // Ends with 130 when its input ends, as --stdin-control does.
        process.start(script("waits", "echo '{\"event\":\"hello\",\"protocol\":1}' >&2\ncat > /dev/null\nexit 130\n"),
                      usualRecording(), QStringLiteral("f"));
        QTRY_COMPARE_WITH_TIMEOUT(process.state(), RecordProcess::State::Running, 5000);
        process.cancel();
        QCOMPARE(process.state(), RecordProcess::State::Cancelling);
        QVERIFY(finished.wait(10000));
        QCOMPARE(process.state(), RecordProcess::State::Cancelled);
    }
};

QTEST_MAIN(TestRecordSettings)
#include "tst_record_settings.moc"
