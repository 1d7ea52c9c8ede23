// Schedule CSV: both dialects, strictness, round trips, files of PyTorch and TorchTitan.
#include <QtTest>

#include "random_schedules.h"
#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/text/csv.h"

using namespace stagewright;

namespace {

QString shared(const QString& file)
{
    return qEnvironmentVariable("STAGEWRIGHT_SHARED") + "/fixtures/torch_csv/" + file;
}

std::string contents(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string();
}

// The cells of a file without blanks, row by row: what "equal cell by cell" compares.
QStringList cells(const std::string& text)
{
    QStringList rows;
    for (const QString& line : QString::fromStdString(text).split('\n', Qt::SkipEmptyParts)) {
        QStringList kept;
        for (const QString& cell : line.split(','))
            if (!cell.trimmed().isEmpty()) kept << cell.trimmed();
        rows << kept.join(',');
    }
    return rows;
}

} // namespace

class TestCsv : public QObject {
    Q_OBJECT
private slots:
    void newDialect()
    {
        const Schedule s = *readScheduleCsv("0F0, 0I0 ,0W0\r\n,1F0,,1B0\r\n", {}, "mine");
        QCOMPARE(QString::fromStdString(toText(s)), QString("0F0 0I0 0W0\n1F0 1B0\n"));
        QCOMPARE(s.name, std::string("mine"));
        QCOMPARE(s.ranks, 2);
        QCOMPARE(s.stages, 2);
        QCOMPARE(s.microbatches, 1);
        QCOMPARE(s.placement, Placement::loop(2, 2));
    }
    void oldDialect()
    {
        const Schedule s = *readScheduleCsv("0F0,0B0,0W0\n1F0,1BW0\n");
        QCOMPARE(QString::fromStdString(toText(s)), QString("0F0 0I0 0W0\n1F0 1B0\n"));
        // W without any I is the old dialect, also without BW.
        QCOMPARE(QString::fromStdString(toText(*readScheduleCsv("0F0,0B0,0W0\n"))), QString("0F0 0I0 0W0\n"));
        CsvOptions old;
        old.dialect = CsvDialect::Old;
        QCOMPARE(QString::fromStdString(toText(*readScheduleCsv("0F0,0B0\n", old))), QString("0F0 0I0\n"));
        QCOMPARE(QString::fromStdString(*writeScheduleCsv(s, old)), QString("0F0,0B0,0W0\n1F0,1BW0\n"));
        QCOMPARE(QString::fromStdString(*writeScheduleCsv(s)), QString("0F0,0I0,0W0\n1F0,1B0\n"));
    }
    void placementFollowsTheRows()
    {
        const Schedule s = *readScheduleCsv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
        QCOMPARE(s.placement, Placement::vShape(2));
        const Schedule both = *readScheduleCsv("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n");
        QCOMPARE(both.placement, Placement::bidirectional(2, 2));
        QVERIFY(validate(both).valid());
        CsvOptions torch;
        torch.pytorch = true;
        const auto refused = readScheduleCsv("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n", torch);
        QVERIFY(!refused);
        QCOMPARE(QString::fromStdString(refused.error().message),
                 QString("stage 0 is in lines 1 and 2; PyTorch keeps a stage on one rank"));
        QVERIFY(!writeScheduleCsv(both, torch));
    }
    void errors_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        auto add = [](const char* text, const char* message) { QTest::newRow(text) << text << message; };
        add("", "no ops: the file is empty");
        add(" \r\n\n", "no ops: the file is empty");
        add(",,\n,", "no ops: every cell is blank");
        add("0F0,0B0x\n", "line 1, cell 2 (0B0x): op '0B0x': nothing more expected at character 4 ('x')");
        add("0F0\n,1F0,1Q0\n", "line 2, cell 3 (1Q0): op '1Q0': unknown kind 'Q' at character 2");
        add("# weights=fresh\n0F0,0B0\n", "line 1, cell 1 (# weights=fresh): weights: 'fresh' is unknown");
        add("# slices=3,,2\n0F0,0B0\n",
            "line 1, cell 1 (# slices=3,,2): slices: whole numbers from 1, separated by commas, expected");
        add("# slices=3,0\n0F0,0B0\n",
            "line 1, cell 1 (# slices=3,0): slices: whole numbers from 1, separated by commas, expected");
        add("# slices=3 colour=red\n0F0,0B0\n",
            "line 1, cell 1 (# slices=3 colour=red): 'colour=red' is not a setting");
        add("0F0,0B0\n# weights=stashed\n",
            "line 2, cell 1 (# weights=stashed): op '# weights=stashed': stage expected at character 1 ('#')");
        add("(0SEND_F0;0F1)GROUPED\n", "line 1, cell 1 ((0SEND_F0;0F1)GROUPED): 0F1 in a group that ends with GROUPED");
        add("(0F0;0RECV_B0)OVERLAP_F_B\n",
            "line 1, cell 1 ((0F0;0RECV_B0)OVERLAP_F_B): 0RECV_B0 in a pair that ends with OVERLAP_F_B");
        add("0F0,0BW0,0I1\n",
            "line 1, cell 3 (0I1): I belongs to the new dialect, but line 1, cell 2 (0BW0) belongs to the old one");
        add("(0F0;0B0)\n", "line 1, cell 1 ((0F0;0B0)): '' after the pair, OVERLAP_F_B expected");
        add("(0F0;0B0)OVERLAP\n", "line 1, cell 1 ((0F0;0B0)OVERLAP): 'OVERLAP' after the pair, OVERLAP_F_B expected");
        add("(0F0;0B0\n", "line 1, cell 1 ((0F0;0B0): ')' is missing");
        add("(0F0)OVERLAP_F_B\n", "line 1, cell 1 ((0F0)OVERLAP_F_B): a pair has exactly two ops, separated by ';'");
        add("(0F0;0F1;0F2)OVERLAP_F_B\n",
            "line 1, cell 1 ((0F0;0F1;0F2)OVERLAP_F_B): a pair has exactly two ops, separated by ';'");
        add("(0F0;)OVERLAP_F_B\n", "line 1, cell 1 ((0F0;)OVERLAP_F_B): op '': stage expected at the end");
        add("0F0;0B0\n", "line 1, cell 1 (0F0;0B0): op '0F0;0B0': nothing more expected at character 4 (';')");
        add("\"0F0,0B0\n", "line 1, cell 1 (\"0F0,0B0): the closing quotation mark is missing");
        add("\"0F0,0B0\"\n", "line 1, cell 1 (0F0,0B0): op '0F0,0B0': nothing more expected at character 4 (',')");
        add("()GROUPED\n", "line 1, cell 1 (()GROUPED): op '': stage expected at the end");
        add("# ranks=1\n0F0,0B0\n1F0,1B0\n", "the first line says ranks=1, but there are 2 lines of ranks");
        add("# ranks=0\n0F0,0B0\n", "line 1, cell 1 (# ranks=0): ranks: a whole number from 1 to 65536 expected");
    }
    void errors()
    {
        QFETCH(QString, text);
        QFETCH(QString, message);
        const auto schedule = readScheduleCsv(text.toStdString());
        QVERIFY(!schedule);
        QCOMPARE(schedule.error().code, ErrorCode::Unreadable);
        QCOMPARE(QString::fromStdString(schedule.error().message), message);
    }
    void forcedDialects()
    {
        CsvOptions options;
        options.dialect = CsvDialect::New;
        QCOMPARE(QString::fromStdString(readScheduleCsv("0F0,0BW0\n", options).error().message),
                 QString("line 1, cell 2 (0BW0): BW is the old dialect's full backward; here it is written B"));
        options.dialect = CsvDialect::Old;
        QCOMPARE(
            QString::fromStdString(readScheduleCsv("0F0,0I0\n", options).error().message),
            QString("line 1, cell 2 (0I0): I belongs to the new dialect; the old one writes B for the input gradient"));
    }
    void pytorchRestriction_data()
    {
        QTest::addColumn<QString>("cell");
        for (const char* cell : {"0FILLER5", "0W0-1", "0F0.0", "0B0h1", "0R0", "0OPT", "0OFFLOAD0"})
            QTest::newRow(cell) << cell;
    }
    void pytorchRestriction()
    {
        QFETCH(QString, cell);
        const std::string text = "0F0," + cell.toStdString() + "\n";
        CsvOptions torch;
        torch.pytorch = true;
        const auto free = readScheduleCsv(text);
        QVERIFY(free);
        const auto refused = readScheduleCsv(text, torch);
        QVERIFY(!refused);
        QVERIFY(refused.error().message.find("is unknown to PyTorch") != std::string::npos);
        const auto written = writeScheduleCsv(*free, torch);
        QVERIFY(!written);
        QCOMPARE(written.error().message, refused.error().message);
    }
    void settings()
    {
        const std::string text =
            "# weights=stashed slices=6,4,3,3\n0F0.0,0F0.1,0F0.2,0F0.3,0B0.3,0B0.2,0B0.1,0B0.0,0OPT\n";
        const auto read = readScheduleCsv(text);
        QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
        QCOMPARE(read->weights, WeightRule::Stashed);
        QCOMPARE(read->sliceLengths, (std::vector<std::uint32_t>{6, 4, 3, 3}));
        QCOMPARE(read->ranks, 1);
        QCOMPARE(*writeScheduleCsv(*read), text);
        Schedule plain = *read;
        plain.weights = WeightRule::Synchronous;
        QVERIFY(writeScheduleCsv(plain)->starts_with("# slices=6,4,3,3\n"));
        plain.sliceLengths.clear();
        QVERIFY(writeScheduleCsv(plain)->starts_with("0F0.0"));
        CsvOptions torch;
        torch.pytorch = true;
        QCOMPARE(QString::fromStdString(readScheduleCsv("# weights=stashed\n0F0,0B0\n", torch).error().message),
                 QString("line 1, cell 1 (# weights=stashed): PyTorch's files have no settings line"));
        Schedule stashed = *readScheduleCsv("0F0,0B0\n");
        stashed.weights = WeightRule::Stashed;
        QCOMPARE(QString::fromStdString(writeScheduleCsv(stashed, torch).error().message),
                 QString("the weights are stashed; PyTorch's files can't express that"));
    }
    // A line of communication ops is read as it is; PyTorch's rules refuse idle slots in it.
    void loweredForm()
    {
        const std::string text =
            "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n1RECV_F0,1F0,1B0,1SEND_B0\n";
        CsvOptions torch;
        torch.pytorch = true;
        const auto read = readScheduleCsv(text, torch);
        QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
        QCOMPARE(*writeScheduleCsv(*read, torch), text);
        QCOMPARE(
            QString::fromStdString(readScheduleCsv("0F0,,0SEND_F0\n1RECV_F0,1F0\n", torch).error().message),
            QString("line 1, cell 2 (): a blank cell, but line 1, cell 3 (0SEND_F0) makes the file a lowered one"));
        QVERIFY(readScheduleCsv("0F0,,0SEND_F0\n1RECV_F0,1F0\n"));
        const std::string groups = "0F0,(0SEND_F0;0RECV_B0)GROUPED,0B0\n";
        const auto grouped = readScheduleCsv(groups);
        QVERIFY(grouped);
        QVERIFY(grouped->isPaired(0, 1));
        QCOMPARE(*writeScheduleCsv(*grouped), groups);
        QVERIFY(!readScheduleCsv(groups, torch));
    }
    // Law 3 for schedules.
    void roundTrips()
    {
        for (unsigned seed = 0; seed < 300; ++seed) {
            const Schedule s = test::randomSchedule(seed);
            for (CsvDialect dialect : {CsvDialect::New, CsvDialect::Old}) {
                CsvOptions options;
                options.dialect = dialect;
                const auto text = writeScheduleCsv(s, options);
                QVERIFY2(text.has_value(), text ? "" : text.error().message.c_str());
                const auto back = readScheduleCsv(*text, options);
                QVERIFY2(back.has_value(), back ? "" : back.error().message.c_str());
                QCOMPARE(*back, s);
                QCOMPARE(*writeScheduleCsv(*back, options), *text);
            }
        }
    }
    void emptyRowsSurvive()
    {
        Schedule s = *readScheduleCsv("# ranks=3\n\n0F0,0B0\n");
        QCOMPARE(s.ranks, 3);
        QCOMPARE(s.placement, Placement::of(std::vector<int>{1}));
        QCOMPARE(*writeScheduleCsv(s), std::string("# ranks=3\n,\n0F0,0B0\n,\n"));
        QCOMPARE(*readScheduleCsv(*writeScheduleCsv(s)), s);
        // The text of an editor, in which each line is a rank.
        const CsvOptions editor{.everyRow = true};
        QCOMPARE(*writeScheduleCsv(s, editor), std::string(",\n0F0,0B0\n,\n"));
        QCOMPARE(*readScheduleCsv(*writeScheduleCsv(s, editor), editor), s);
    }
    // What spreadsheets make of a schedule: lines of commas, which don't count, and cells and a first line in quotation
    // marks.
    void spreadsheets_data()
    {
        QTest::addColumn<QString>("text");
        const QString plain = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
        QTest::newRow("plain") << plain;
        QTest::newRow("lines of commas at the end") << plain + ",,,,\n,,\n";
        QTest::newRow("a line of commas between") << "0F0,0F1,0B0,0B1,,\n,,,,,\n1F0,1B0,1F1,1B1,,";
        QTest::newRow("at the start") << "\n,,\n" + plain;
        QTest::newRow("quotation marks")
            << "\"0F0\",\" 0F1\",\"0B0\", \"0B1\" ,\"\"\r\n\"1F0\",1B0,\"1F1\",1B1,\r\n\"\",\"\",,\r\n";
        QTest::newRow("settings") << "\"# replicas=1\",,,\n" + plain;
    }
    void spreadsheets()
    {
        QFETCH(QString, text);
        const auto read = readScheduleCsv(text.toStdString());
        QVERIFY2(read, read ? "" : read.error().message.c_str());
        QCOMPARE(*read, *makeSchedule("1f1b", {2, 2, 0}));
    }
    void quotedGroups()
    {
        const auto read = readScheduleCsv("\"(0F1;1B0)OVERLAP_F_B\",\"# no\"\n");
        QVERIFY(!read);
        QCOMPARE(read.error().message,
                 std::string("line 1, cell 2 (# no): op '# no': stage expected at character 1 ('#')"));
        QCOMPARE(readScheduleCsv("\"# slices=6,4\",,\n0F0.0,0F0.1,0B0.1,0B0.0\n")->sliceLengths,
                 (std::vector<std::uint32_t>{6, 4}));
    }
    // Messages posted together are any number; PyTorch's word for them is BATCH_P2P.
    void groupsOfAnyNumber()
    {
        const std::string four = "0F0,(0SEND_F0;2RECV_F0;2SEND_B0;0RECV_B0)GROUPED,0B0\n";
        const auto read = readScheduleCsv(four);
        QVERIFY2(read, read ? "" : read.error().message.c_str());
        QCOMPARE(read->paired, (std::vector<std::vector<std::uint32_t>>{{1, 2, 3}}));
        QCOMPARE(*writeScheduleCsv(*read), four);
        QCOMPARE(QString::fromStdString(toText(*read)), QString("0F0 (0SEND_F0;2RECV_F0;2SEND_B0;0RECV_B0) 0B0\n"));
        const auto one =
            readScheduleCsv("0F0,(0SEND_F0)GROUPED,(0RECV_B0;2SEND_B0;0SEND_F1)GROUPED,(0SEND_F2;0SEND_F3)GROUPED\n");
        QCOMPARE(one->paired, (std::vector<std::vector<std::uint32_t>>{{2, 3, 5}}));
        const CsvOptions torch{.pytorch = true};
        const std::string batch = "0F0,(0SEND_F0;2RECV_F0;2SEND_B0;0RECV_B0)BATCH_P2P,0B0\n";
        QCOMPARE(*readScheduleCsv(batch), *read);
        QCOMPARE(*readScheduleCsv(batch, torch), *read);
        QCOMPARE(*writeScheduleCsv(*read, torch), batch);
        QVERIFY(!readScheduleCsv(four, torch));
    }

    void torchFiles_data()
    {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("microbatches");
        QTest::addColumn<int>("chunks");
        for (auto [kind, name, chunks] : {std::tuple{"GPipe", "gpipe", 1},
                                          {"1F1B", "1f1b", 1},
                                          {"Interleaved1F1B", "interleaved-1f1b", 2},
                                          {"LoopedBFS", "bfs:order=descending", 2},
                                          {"InterleavedZeroBubble", "zb-h1", 1},
                                          {"InterleavedZeroBubble", "interleaved-zb", 1},
                                          {"InterleavedZeroBubble", "interleaved-zb", 2},
                                          {"ZBVZeroBubble", "zbv", 2}})
            for (auto [p, m] : {std::pair{2, 2}, {2, 4}, {2, 8}, {4, 4}, {4, 8}, {4, 16}}) {
                const QString file = QString("%1_p%2_m%3_v%4.csv").arg(kind).arg(p).arg(m).arg(chunks);
                QTest::newRow(qPrintable(file + " " + name)) << file << name << p << m << chunks;
            }
        QTest::newRow("DualPipeV") << "upstream/pytorch_dualpipev_4rank_10mb.csv"
                                   << "dualpipev" << 4 << 10 << 2;
        QTest::newRow("ZB1P, v=2") << "upstream/pytorch_zb1p_2rank_2stagep_compute.csv"
                                   << "interleaved-zb" << 2 << 8 << 2;
    }
    // Each of the folder's files is in the table above (lowered ones: tst_lower).
    void everyTorchFileIsCompared()
    {
        const QStringList files = QDir(shared("")).entryList({"*.csv"});
        if (files.isEmpty()) QSKIP("PyTorch's CSV files are not there (set STAGEWRIGHT_SHARED)");
        const QRegularExpression compared("^(GPipe|1F1B|Interleaved1F1B|LoopedBFS|InterleavedZeroBubble|ZBVZeroBubble)_"
                                          "p(2_m[248]|4_m(4|8|16))_v[12](_comms)?\\.csv$");
        for (const QString& file : files) QVERIFY2(compared.match(file).hasMatch(), qPrintable(file));
    }
    void torchFiles()
    {
        QFETCH(QString, file);
        QFETCH(QString, name);
        QFETCH(int, ranks);
        QFETCH(int, microbatches);
        QFETCH(int, chunks);
        const std::string text = contents(shared(file));
        if (text.empty()) QSKIP("PyTorch's CSV files are not there (set STAGEWRIGHT_SHARED)");
        CsvOptions torch;
        torch.pytorch = true;
        const auto read = readScheduleCsv(text, torch);
        QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
        QVERIFY(validate(*read).valid());
        QCOMPARE(cells(*writeScheduleCsv(*read, torch)), cells(text));
        QCOMPARE(*read, *makeSchedule(name.toStdString(), {ranks, microbatches, chunks}));
        // Other schedules may have the same order for small shapes; the name is the first that does.
        const std::string known = recognise(*read);
        QVERIFY(known.starts_with("gpipe, ") || *makeSchedule(known, {ranks, microbatches, chunks}) == *read);
    }
    void marksAndLineEndsOfOtherSystems()
    {
        const auto plain = readScheduleCsv("0F0,0B0\n1F0,1B0\n");
        const auto marked = readScheduleCsv("\xef\xbb\xbf"
                                            "0F0, 0B0,\r\n1F0\t,1B0,,\r\n\r\n");
        QVERIFY(plain);
        QVERIFY2(marked, marked ? "" : marked.error().message.c_str());
        QCOMPARE(*marked, *plain);
    }
    void bothFormsOfGpipeAreKnown()
    {
        QCOMPARE(recognise(*readScheduleCsv("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n")), std::string("gpipe"));
        QCOMPARE(recognise(*readScheduleCsv("0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0\n")),
                 std::string("gpipe, backwards in falling order"));
        // One rank in each order is neither.
        QCOMPARE(recognise(*readScheduleCsv("0F0,0F1,0B0,0B1\n1F0,1F1,1B1,1B0\n")), std::string());
    }
    // A stray number names a huge shape: nothing of its size is built.
    void strayMicrobatchIsCheap()
    {
        const auto read = readScheduleCsv("0F0,0B999999999\n");
        QVERIFY(read);
        QCOMPARE(recognise(*read), std::string());
        QVERIFY(!validate(*read).valid());
        const auto wide = readScheduleCsv("65535F999999999,0B3\n");
        QVERIFY(wide);
        QCOMPARE(recognise(*wide), std::string());
        QVERIFY(!validate(*wide).valid());
    }
    void communicationFilesComeBack()
    {
        const std::string text = contents(shared("1F1B_p4_m8_v1_comms.csv"));
        if (text.empty()) QSKIP("PyTorch's CSV files are not there (set STAGEWRIGHT_SHARED)");
        CsvOptions torch;
        torch.pytorch = true;
        for (const char* name : {"1F1B_p4_m8_v1_comms.csv", "upstream/pytorch_zb1p_2rank_2stagep_comms.csv"}) {
            const std::string file = contents(shared(name));
            const auto read = readScheduleCsv(file, torch);
            QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
            QCOMPARE(cells(*writeScheduleCsv(*read, torch)), cells(file));
        }
    }
    // Files of the projects themselves; times by the reference simulator at F = I = W = 1.
    void upstreamFiles_data()
    {
        QTest::addColumn<QString>("file");
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("stages");
        QTest::addColumn<int>("microbatches");
        QTest::addColumn<double>("makespan"); // < 0: not given
        QTest::newRow("zb1p, v=2") << "pytorch_zb1p_2rank_2stagep_compute.csv" << 2 << 4 << 8 << 24.5;
        QTest::newRow("torchtitan") << "torchtitan_custom_schedule.csv" << 2 << 4 << 8 << 25.0;
        QTest::newRow("dualpipev") << "pytorch_dualpipev_4rank_10mb.csv" << 4 << 8 << 10 << 33.0; // 3m + p − 1
    }
    void upstreamFiles()
    {
        QFETCH(QString, file);
        QFETCH(int, ranks);
        QFETCH(int, stages);
        QFETCH(int, microbatches);
        QFETCH(double, makespan);
        const std::string text = contents(shared("upstream/" + file));
        if (text.empty()) QSKIP("PyTorch's CSV files are not there (set STAGEWRIGHT_SHARED)");
        const auto read = readScheduleCsv(text);
        QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
        QCOMPARE(read->ranks, ranks);
        QCOMPARE(read->stages, stages);
        QCOMPARE(read->microbatches, microbatches);
        const Validation validation = validate(*read);
        QVERIFY2(validation.valid(), validation.valid() ? "" : validation.faults[0].message.c_str());
        QCOMPARE(cells(*writeScheduleCsv(*read)), cells(text));
        const auto result = simulate(*read, CostModel::uniform(*read));
        QVERIFY(result.has_value());
        QCOMPARE(static_cast<double>(result->makespan) / rankShare, makespan);
        if (file.contains("dualpipev")) QCOMPARE(read->paired[0].size(), std::size_t{9});
    }

    // A text that comes in parts of any size reads as it does in one piece, errors and their places too.
    void parts()
    {
        const std::string marks = "\xef\xbb\xbf";
        std::vector<std::string> texts = {"",
                                          "\n\n",
                                          " \t\n",
                                          "0F0,0B0\n",
                                          marks + "0F0,0B0",
                                          "0F0,0B0\n\n1F0,1B0\n \n\n",
                                          "0F0,,\n,\n",
                                          "# weights=stashed slices=6,4\n0F0.0,0F0.1\n",
                                          "#",
                                          "# x=1\n0F0",
                                          "0F0,0BW0\n1F0,1B0,1W0",
                                          "0F0,0BW0\n1F0,1I0",
                                          "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n",
                                          "0F0,(0F1;0B0\n",
                                          "0F0,x,0B0",
                                          "\n\n,0F0x\n",
                                          std::string(70000, '\n') + "0F0"};
        for (int i = 0; i < 50; ++i) texts.push_back(*writeScheduleCsv(test::randomSchedule(static_cast<unsigned>(i))));
        for (const std::string& text : texts)
            for (const std::size_t most : {std::size_t{1}, std::size_t{3}, std::size_t{4096}}) {
                std::size_t at = 0;
                const TextSource source = [&](char* to, std::size_t size) {
                    const std::size_t got = std::min({size, most, text.size() - at});
                    std::copy_n(text.data() + at, got, to);
                    at += got;
                    return got;
                };
                const auto whole = readScheduleCsv(text), inParts = readScheduleCsv(source);
                QCOMPARE(inParts.has_value(), whole.has_value());
                if (whole)
                    QVERIFY(*inParts == *whole);
                else
                    QCOMPARE(inParts.error().message, whole.error().message);
            }
    }
    void longCells()
    {
        const std::string large(std::size_t{3} << 20, 'x');
        for (const std::string& text :
             {"0F0," + large + ",0B0\n", "0F0\n" + std::string(large.size(), ' ') + "\n", "# " + large + "\n0F0"}) {
            std::size_t at = 0;
            const auto read = readScheduleCsv([&](char* to, std::size_t size) {
                const std::size_t got = std::min(size, text.size() - at);
                std::copy_n(text.data() + at, got, to);
                at += got;
                return got;
            });
            QVERIFY(!read.has_value());
            QVERIFY2(read.error().message.size() < 300, read.error().message.c_str());
            QVERIFY2(read.error().message.find("more than 1048576 bytes") != std::string::npos,
                     read.error().message.c_str());
        }
    }
    void pairsOfComputeAndMessage()
    {
        Schedule s = *makeSchedule("1f1b", Shape{2, 2, 0});
        s.order[1][0] = *parseOp("1RECV_F0");
        s.paired.assign(2, {});
        s.paired[1] = {0};
        const auto written = writeScheduleCsv(s);
        QVERIFY(!written);
        const std::string second = toText(s.order[1][1]);
        QVERIFY2(written.error().message.find("line 2, cell 2 (" + second + "): issued together with 1RECV_F0") !=
                     std::string::npos,
                 written.error().message.c_str());
    }
};

QTEST_APPLESS_MAIN(TestCsv)
#include "tst_csv.moc"
