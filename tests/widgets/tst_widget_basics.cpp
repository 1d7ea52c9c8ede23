// Theme, fonts, numbers, the shared view state and the key maps.
#include <array>
#include <map>

#include <QApplication>
#include <QFontDatabase>
#include <QFontMetricsF>
#include <QGlyphRun>
#include <QRawFont>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QTest>
#include <QTextLayout>

#include "traces/report/tables.h"
#include "widgets/numbers.h"
#include "widgets/readable.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/theme.h"
#include "widgets/timeline/key_map.h"
#include "widgets/timeline/view_state.h"

using namespace stagewright;

class TestWidgetBasics : public QObject {
    Q_OBJECT

private slots:
    void fontsAreBundled();
    void paletteIsTheStandard();
    void everythingIsReadable();
    void boldIsSemibold();
    void highContrastIs();
    void timeUnitsAreChosen();
    void numbers_data();
    void numbers();
    void everyTextAgrees();
    void bytesAndPercents();
    void moments();
    void viewStaysNearTheExtent();
    void historyWalks();
    void selectionsExclude();
    void keysDecode();
    void everyActionHasAKey();
    void identifiersStayAsTheyAre();
    void longNamesBreakAndTipsWrap();
};

void TestWidgetBasics::fontsAreBundled()
{
    QCOMPARE(loadFonts(), QStringLiteral("Inter"));
    QVERIFY(QFontDatabase::families().contains(QStringLiteral("Inter")));
    QCOMPARE(QFontInfo(fontOf(FontRole::Body)).family(), QStringLiteral("Inter"));
    // Boxes for missing glyphs all have one width; real letters don't, and semibold is wider than regular.
    const QFontMetricsF body(fontOf(FontRole::Body)), strong(fontOf(FontRole::Strong));
    QVERIFY(body.horizontalAdvance(QStringLiteral("W")) > 1.5 * body.horizontalAdvance(QStringLiteral("i")));
    QVERIFY(strong.horizontalAdvance(QStringLiteral("Rank 0")) > body.horizontalAdvance(QStringLiteral("Rank 0")));
}

void TestWidgetBasics::paletteIsTheStandard()
{
    const Theme& light = Theme::light();
    QCOMPARE(light.of(OpKind::Forward).fill, QColor("#2F5D9C"));
    QCOMPARE(light.of(OpKind::InputGrad).fill, QColor("#EE8F2A"));
    QCOMPARE(light.of(OpKind::Backward).fill, light.of(OpKind::InputGrad).fill);
    QCOMPARE(light.of(OpKind::WeightGrad).fill, QColor("#45C794"));
    QCOMPARE(light.of(OpKind::SendF).fill, QColor("#D19FCC"));
    QCOMPARE(light.critical, QColor("#D7263D"));
    const Theme& dark = Theme::darkTheme();
    QCOMPARE(dark.of(OpKind::Forward).fill, QColor("#4895EE"));
    QCOMPARE(dark.of(OpKind::Optimizer).fill, QColor("#C9D0E0"));
    QCOMPARE(dark.canvas, QColor("#181B21"));
    QVERIFY(dark.dark && !light.dark);
}

// What informs has a contrast of 4.5 on whatever is behind it, what can be filled in a border of 3, in every theme.
void TestWidgetBasics::everythingIsReadable()
{
    for (const ThemeName name : {ThemeName::Light, ThemeName::Dark, ThemeName::HighContrast}) {
        const Theme& theme = Theme::named(name);
        std::map<QString, QColor> colours;
        for (const auto& [word, colour] : styleColours(theme)) colours[word] = colour;
        const auto readable = [&](const char* ink, std::initializer_list<const char*> grounds, double least) {
            for (const char* ground : grounds) {
                const double is = contrast(colours.at(QLatin1String(ink)), colours.at(QLatin1String(ground)));
                if (is < least)
                    qWarning("theme %d: %s on %s has %.2f, not %.1f", static_cast<int>(name), ink, ground, is, least);
                if (is < least) return false;
            }
            return true;
        };
        for (const char* ink : {"@text", "@secondary", "@faint"})
            QVERIFY(readable(
                ink, {"@canvas", "@panel", "@window", "@field", "@groove", "@hover", "@bannerFill", "@errorFill"},
                4.5));
        QVERIFY(readable("@text", {"@tint"}, 4.5));
        QVERIFY(readable("@accentText", {"@canvas", "@panel", "@window", "@tint", "@hover"}, 4.5));
        for (const char* ink : {"@better", "@worse"}) QVERIFY(readable(ink, {"@canvas", "@panel"}, 4.5));
        QVERIFY(readable("@critical", {"@canvas", "@panel"}, 4.5));
        QVERIFY(readable("@onAccent", {"@accent", "@accentHover"}, 4.5));
        QVERIFY(readable("@fieldLine", {"@canvas", "@panel", "@window", "@field"}, 3));
        QVERIFY(contrast(theme.text, theme.canvas) >= 7);
        QVERIFY(contrast(theme.pillText, theme.pill) >= 4.5);
        QVERIFY(contrast(theme.hoverLabelText, theme.hoverLabel) >= 4.5);
        for (const auto& row : theme.tints)
            for (const Fill& fill : row) QVERIFY2(contrast(fill.fill, fill.label) >= 4.5, qPrintable(fill.fill.name()));
        // The critical path's outline, or the line inside it, is set off from every op.
        for (const auto& row : theme.tints)
            for (const Fill& fill : row)
                QVERIFY2(contrast(theme.critical, fill.fill) >= (fill.label.lightnessF() > 0.5F ? 3 : 1.5) ||
                             (contrast(fill.label, fill.fill) >= 3 && contrast(fill.label, theme.critical) >= 3),
                         qPrintable(fill.fill.name()));
    }
}

// Inter has no bold face here: a bold text would be smeared.
void TestWidgetBasics::boldIsSemibold()
{
    for (const FontRole role :
         {FontRole::Body, FontRole::Small, FontRole::Label, FontRole::Strong, FontRole::Rank, FontRole::Headline}) {
        QVERIFY(fontOf(role).weight() <= QFont::DemiBold);
        QCOMPARE(fontOf(role).pixelSize(),
                 textPixels(std::array{12, 11, 12, 12, 13, 30}.at(static_cast<std::size_t>(role))));
    }
    static const QRegularExpression weight(QStringLiteral("font-weight: ([^;]*);"));
    const QString sheet = styleSheet(Theme::light());
    for (auto found = weight.globalMatch(sheet); found.hasNext();) QVERIFY(found.next().captured(1).toInt() <= 600);
}

void TestWidgetBasics::highContrastIs()
{
    const Theme& t = Theme::named(ThemeName::HighContrast);
    QVERIFY(t.dark && t.highContrast);
    for (const QColor& ground : {t.canvas, t.panel, t.window}) {
        for (const QColor& ink : {t.text, t.secondary, t.faint, t.better, t.worse, t.critical, t.accent})
            QVERIFY2(contrast(ink, ground) >= 7, qPrintable(ink.name()));
        for (const QColor& line : {t.separator, t.bubbleHatch, t.memoryLine, t.memoryFill, t.ghost})
            QVERIFY2(contrast(line, ground) >= 3, qPrintable(line.name()));
        for (const auto& row : t.tints)
            for (const Fill& fill : row) QVERIFY2(contrast(fill.fill, ground) >= 3, qPrintable(fill.fill.name()));
    }
    for (const auto& row : t.tints)
        for (const Fill& fill : row) QVERIFY2(contrast(fill.fill, fill.label) >= 7, qPrintable(fill.fill.name()));
    QVERIFY(contrast(t.pillText, t.pill) >= 7 && contrast(t.hoverLabelText, t.hoverLabel) >= 7 &&
            contrast(t.onAccent, t.accent) >= 7);
    QVERIFY(&Theme::named(ThemeName::Light) == &Theme::light() &&
            &Theme::named(ThemeName::Dark) == &Theme::darkTheme());
}

void TestWidgetBasics::timeUnitsAreChosen()
{
    setTimeUnit(TimeUnit::Milliseconds);
    const QString milliseconds = durationText(253'000), nothing = durationText(0),
                  units = durationText(3 * rankShare, Units{rankShare, 1});
    setTimeUnit(TimeUnit::Microseconds);
    const QString microseconds = durationText(1'200'000'000), moment = momentText(146'740'000, 253'000);
    setTimeUnit(TimeUnit::Nanoseconds);
    const QString nanoseconds = durationText(1234);
    setTimeUnit(TimeUnit::Automatic);
    QCOMPARE(milliseconds, QStringLiteral("0.253 ms"));
    QCOMPARE(nothing, QStringLiteral("0 ms"));
    QCOMPARE(units, QStringLiteral("3 units")); // unit costs have no other unit
    QCOMPARE(microseconds, QString::fromUtf8("1200000 µs"));
    QCOMPARE(moment, QString::fromUtf8("146740 µs"));
    QCOMPARE(nanoseconds, QStringLiteral("1234 ns"));
    QCOMPARE(durationText(253'000), QString::fromUtf8("253.0 µs"));
}

void TestWidgetBasics::numbers_data()
{
    QTest::addColumn<qint64>("duration");
    QTest::addColumn<qint64>("unit");
    QTest::addColumn<QString>("text");
    QTest::newRow("ms") << qint64(32'240'000) << qint64(1) << QStringLiteral("32.2 ms");
    QTest::newRow("small ms") << qint64(9'800'000) << qint64(1) << QStringLiteral("9.80 ms");
    QTest::newRow("large ms") << qint64(335'200'000) << qint64(1) << QStringLiteral("335.2 ms");
    QTest::newRow("negative") << qint64(-55'900'000) << qint64(1) << QStringLiteral("\u221255.9 ms");
    QTest::newRow("seconds") << qint64(1'200'000'000) << qint64(1) << QStringLiteral("1.20 s");
    QTest::newRow("not 1000 µs") << qint64(999'999) << qint64(1) << QString::fromUtf8("1.00 ms");
    QTest::newRow("µs") << qint64(253'000) << qint64(1) << QString::fromUtf8("253.0 µs");
    QTest::newRow("ns") << qint64(17) << qint64(1) << QStringLiteral("17 ns");
    QTest::newRow("zero") << qint64(0) << qint64(1) << QStringLiteral("0 ns");
    QTest::newRow("units") << qint64(3 * rankShare) << qint64(rankShare) << QStringLiteral("3 units");
}

void TestWidgetBasics::numbers()
{
    QFETCH(qint64, duration);
    QFETCH(qint64, unit);
    QFETCH(QString, text);
    QCOMPARE(durationText(duration, Units{unit, 1}), text);
}

// The command line's and the page's sentences and table cells, and the window: one text for one value.
void TestWidgetBasics::everyTextAgrees()
{
    const auto agree = [](const std::string& text, const QString& window, ColumnKind kind, std::int64_t value,
                          const Units& units, const QString& word) {
        const QString expected = QString::fromStdString(text);
        QCOMPARE(window, expected);
        QString cell = QString::fromStdString(cellText({"key", "Title", kind, ""}, TableCell(value), units));
        if (!word.isEmpty()) { // columns leave the word out
            QVERIFY2(expected.endsWith(QLatin1Char(' ') + word) ||
                         expected == QStringLiteral("1 ") + word.chopped(word.endsWith(QLatin1String("ches")) ? 2 : 1),
                     qPrintable(expected));
            cell = cell + QLatin1Char(' ') + expected.section(QLatin1Char(' '), 1);
        }
        QCOMPARE(cell, expected);
        QVERIFY2(!expected.contains(QLatin1Char('-')), qPrintable(expected));
    };
    const Units real, shares{rankShare, activationShare};
    for (const Nanos nanos : {0LL, 1LL, 17LL, 999LL, 1000LL, 9994LL, 9996LL, 253'000LL, 999'949LL, 999'999LL,
                              32'240'000LL, 999'960'000LL, 1'200'000'000LL, 99'999'000'000LL})
        for (const Nanos value : {nanos, -nanos}) {
            agree(formatDuration(value), durationText(value), ColumnKind::Time, value, real, {});
            agree(formatDuration(value, rankShare), durationText(value, shares), ColumnKind::Time, value, shares,
                  QStringLiteral("units"));
        }
    for (const Nanos tenths : {0, 1, 5, 10, 15, 55, 270, 330, 99'999})
        agree(formatDuration(tenths * rankShare / 10, rankShare), durationText(tenths * rankShare / 10, shares),
              ColumnKind::Time, tenths * rankShare / 10, shares, QStringLiteral("units"));
    for (const Bytes bytes : {0LL, 100LL, 1023LL, 1024LL, 512LL << 10, 1023LL << 10, 150LL << 20, 6656LL << 20,
                              20LL << 30, 3LL << 40, 3LL << 50})
        for (const Bytes value : {bytes, -bytes})
            agree(formatBytes(value), bytesText(value), ColumnKind::Size, value, real, {});
    for (const Bytes thirds : {0, 1, 2, 3, 12, 16})
        agree(formatBytes(thirds * activationShare / 3, activationShare),
              bytesText(thirds * activationShare / 3, shares), ColumnKind::Size, thirds * activationShare / 3, shares,
              QStringLiteral("microbatches"));
    for (const double share : {0.0, 0.15, -0.0001, 0.27272, 1.5, -0.166, 11.0}) {
        QCOMPARE(percentText(share), QString::fromStdString(formatPercent(share)));
        QCOMPARE(changeText(1, 1 + share), QString::fromStdString(formatChange(share)));
        QCOMPARE(fixed(share, 2), QString::fromStdString(fixedNumber(share, 2)));
    }
}

void TestWidgetBasics::bytesAndPercents()
{
    QCOMPARE(bytesText(Bytes(6.5 * 1073741824.0)), QStringLiteral("6.50 GiB"));
    QCOMPARE(bytesText(512 * 1024), QStringLiteral("512.0 KiB"));
    QCOMPARE(bytesText(100), QStringLiteral("100 B"));
    QCOMPARE(bytesText(3 * activationShare, Units{1, activationShare}), QStringLiteral("3 microbatches"));
    QCOMPARE(percentText(0.15), QStringLiteral("15.0 %"));
    // one form of large numbers, that of counts
    const Units shares{rankShare, activationShare};
    QCOMPARE(durationText(9999 * rankShare, shares), QStringLiteral("9999 units"));
    QCOMPARE(durationText(12'297 * rankShare, shares), QStringLiteral("12,297 units"));
    QCOMPARE(durationText(-16'342'501 * rankShare - rankShare / 4, shares), QString::fromUtf8("−16,342,501 units"));
    QCOMPARE(unitsText(12'297.5, 1), QStringLiteral("12,297.5 units"));
    QCOMPARE(bytesText(64'512 * activationShare, shares), QStringLiteral("64,512 microbatches"));
    QCOMPARE(signedFixed(-0.04, 1), QStringLiteral("0.0"));
    QCOMPARE(signedFixed(1.5, 1), QStringLiteral("+1.5"));
    QCOMPARE(signedDurationText(-1'000'000), QStringLiteral("\u22121.00 ms"));
    QCOMPARE(fixed(std::nan(""), 1), QStringLiteral("–"));
}

void TestWidgetBasics::moments()
{
    QCOMPARE(momentText(146'740'000, 253'000), QStringLiteral("146.74 ms"));
    QCOMPARE(momentText(146'740'123, 1), QStringLiteral("146.740123 ms")); // never more digits than nanoseconds
}

void TestWidgetBasics::viewStaysNearTheExtent()
{
    ViewState state;
    state.setExtent({0, 1000});
    state.fitAll();
    QCOMPARE(state.visible(), (TimeRange{0, 1012}));
    state.setVisible({-5000, -4000});
    QCOMPARE(state.visible().begin, Nanos(-100));
    QVERIFY(state.visible().duration() == 1000);
    state.setVisible({0, 1'000'000});
    QCOMPARE(state.visible(), (TimeRange{-100, 1100}));
    state.setVisible({500, 501});
    QCOMPARE(state.visible().duration(), Nanos(10));
    QVERIFY(state.visible().begin <= 500 && state.visible().end >= 501);
}

void TestWidgetBasics::historyWalks()
{
    ViewState state;
    state.setExtent({0, 1000});
    state.fitAll();
    const TimeRange all = state.visible();
    QVERIFY(!state.canGoBack());
    state.setVisible({100, 300});
    state.setVisible({120, 200}, false); // during a drag
    state.setVisible({130, 210}, false);
    QSignalSpy changed(&state, &ViewState::visibleChanged);
    state.goBack(); // from where the drag is
    QCOMPARE(state.visible(), (TimeRange{100, 300}));
    state.goBack();
    QCOMPARE(state.visible(), all);
    state.goBack();
    QCOMPARE(state.visible(), all);
    state.goForward();
    state.goForward();
    QCOMPARE(state.visible(), (TimeRange{130, 210}));
    QCOMPARE(changed.count(), 4);
    state.goBack();
    state.setVisible({1, 50});
    QVERIFY(!state.canGoForward());
}

void TestWidgetBasics::selectionsExclude()
{
    ViewState state;
    QSignalSpy changed(&state, &ViewState::selectionChanged);
    state.select({0, 3});
    state.setAreas({{{10, 20}, 0, 1}, {{40, 60}, 2, 2}});
    QVERIFY(!state.selected().valid());
    QCOMPARE(*state.selectedRange(), (TimeRange{10, 60}));
    state.select({0, 4});
    QVERIFY(state.areas().empty());
    QVERIFY(!state.selectedRange());
    state.clearSelection();
    state.clearSelection(); // nothing left: no signal
    QCOMPARE(changed.count(), 4);
}

void TestWidgetBasics::keysDecode()
{
    const auto decode = [](int key, Qt::KeyboardModifiers modifiers, KeyMapName map = KeyMapName::Perfetto) {
        return actionOf(map, QKeyEvent(QEvent::KeyPress, key, modifiers));
    };
    QCOMPARE(decode(Qt::Key_W, Qt::NoModifier), std::optional(ViewAction::ZoomIn));
    QCOMPARE(decode(Qt::Key_Plus, Qt::ShiftModifier), std::optional(ViewAction::ZoomIn));
    QCOMPARE(decode(Qt::Key_Plus, Qt::KeypadModifier), std::optional(ViewAction::ZoomIn));
    QCOMPARE(decode(Qt::Key_Left, Qt::AltModifier), std::optional(ViewAction::HistoryBack));
    QCOMPARE(decode(Qt::Key_Left, Qt::ControlModifier), std::optional(ViewAction::NudgeLeft));
    QCOMPARE(decode(Qt::Key_BracketRight, Qt::NoModifier), std::optional(ViewAction::NextDependency));
    QVERIFY(!decode(Qt::Key_W, Qt::ControlModifier));
    QCOMPARE(decode(Qt::Key_Up, Qt::NoModifier, KeyMapName::Tracy), std::optional(ViewAction::ZoomIn));
    QCOMPARE(decode(Qt::Key_Z, Qt::NoModifier, KeyMapName::Nsight), std::optional(ViewAction::FitSelection));
}

void TestWidgetBasics::everyActionHasAKey()
{
    for (const KeyMapName map : {KeyMapName::Perfetto, KeyMapName::Nsight, KeyMapName::Tracy}) {
        QCOMPARE(keyMap(map).size(), std::size_t(ViewAction::Cancel) + 1);
        QList<QKeySequence> seen;
        for (const KeyBinding& binding : keyMap(map)) {
            QVERIFY(!binding.keys.empty() && !binding.title.isEmpty());
            for (const QKeySequence& keys : binding.keys) {
                QVERIFY2(!seen.contains(keys), qPrintable(keys.toString()));
                seen << keys;
            }
        }
    }
}

// An x between digits is the letter, not a multiplication sign: names of kernels have many.
void TestWidgetBasics::identifiersStayAsTheyAre()
{
    for (const FontRole role : {FontRole::Body, FontRole::Small, FontRole::Strong}) {
        QTextLayout layout(QStringLiteral("128x32"), fontOf(role));
        layout.beginLayout();
        layout.createLine();
        layout.endLayout();
        QList<quint32> glyphs;
        for (const QGlyphRun& run : layout.glyphRuns()) glyphs += run.glyphIndexes();
        QCOMPARE(glyphs.size(), 6);
        const QRawFont font = QRawFont::fromFont(fontOf(role));
        QCOMPARE(glyphs[3], font.glyphIndexesForString(QStringLiteral("x")).front());
        QVERIFY(glyphs[3] != font.glyphIndexesForString(QStringLiteral("×")).front());
    }
    // Names start a sentence as they are, other words with a capital.
    for (const QString& name :
         {QStringLiteral("mfu_2gpu_before was imported"), QStringLiteral("step_12"), QStringLiteral("at::native::add"),
          QStringLiteral("rank3.pt.trace.json: it ends early"), QStringLiteral("a/b.json is empty")})
        QCOMPARE(sentence(name), name);
    QCOMPARE(sentence(QStringLiteral("its lanes, e.g. those of CPUs")),
             QStringLiteral("Its lanes, e.g. those of CPUs"));
    QCOMPARE(sentence(QStringLiteral("rank 0: op 3.5 µs")), QStringLiteral("Rank 0: op 3.5 µs"));
}

void TestWidgetBasics::longNamesBreakAndTipsWrap()
{
    const QString name = QStringLiteral("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>"
                                        "(cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4::Params), rank 7");
    const QString broken = breakable(name);
    QCOMPARE(QString(broken).remove(QChar(0x200b)), name); // nothing but places to break
    const QFontMetrics metrics(fontOf(FontRole::Body));
    for (const QString& part : broken.split(QRegularExpression(QStringLiteral("[ \\x{200b}]"))))
        QVERIFY2(metrics.horizontalAdvance(part) < 220, qPrintable(part));
    for (const QString& part : breakable(QString(300, QLatin1Char('W'))).split(QChar(0x200b)))
        QVERIFY(part.size() <= 28);
    QCOMPARE(breakable(QStringLiteral("short_name")), QStringLiteral("short_name"));
    const QString tip = inLines(QStringLiteral("every rank runs what is ready first, and so forth: ").repeated(6));
    for (const QString& line : tip.split(QLatin1Char('\n'))) QVERIFY2(line.size() <= 70, qPrintable(line));
    QCOMPARE(QString(tip).replace(QLatin1Char('\n'), QLatin1Char(' ')).simplified().size(),
             QStringLiteral("every rank runs what is ready first, and so forth: ").repeated(6).simplified().size());
}

QTEST_MAIN(TestWidgetBasics)
#include "tst_widget_basics.moc"
