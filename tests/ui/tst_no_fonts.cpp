// A computer without any font: the window draws with its own fonts, which have every letter it uses.
#include <QAbstractButton>
#include <QDialog>
#include <QDirIterator>
#include <QFile>
#include <QFontDatabase>
#include <QFontInfo>
#include <QLabel>
#include <QPainter>
#include <QRawFont>
#include <QRegularExpression>
#include <QSet>

#include "app/ui/explore/explorer_controller.h"
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/shell/key_page.h"
#include "app/ui/shell/preferences_controller.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "tests/ui/window_fixture.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

class TestNoFonts : public QObject {
    Q_OBJECT

    std::unique_ptr<WindowFixture> m_fixture;

    // Letters on screen that the bundled font lacks, with their places.
    static QStringList missing(QWidget* root)
    {
        const QRawFont font = QRawFont::fromFont(fontOf(FontRole::Body));
        QStringList found;
        const auto check = [&](const QString& text) {
            for (const char32_t c : text.toUcs4())
                if (c > 32 && QChar::isPrint(c) && !font.supportsCharacter(c))
                    found << QStringLiteral("U+%1 in “%2”").arg(static_cast<uint>(c), 4, 16).arg(text.left(40));
        };
        for (const QWidget* widget : root->findChildren<QWidget*>()) {
            if (const auto* label = qobject_cast<const QLabel*>(widget)) check(label->text());
            if (const auto* button = qobject_cast<const QAbstractButton*>(widget)) check(button->text());
        }
        for (const QAction* action : root->findChildren<QAction*>()) check(action->text());
        found.removeDuplicates();
        return found;
    }

private slots:
    void initTestCase()
    {
        m_fixture = std::make_unique<WindowFixture>();
        qputenv("XDG_DATA_HOME", m_fixture->dir.path().toUtf8());
        QStringList families = QFontDatabase::families();
        // names that fontconfig has without any font
        for (const char* alias : {"Monospace", "Sans Serif", "Serif"}) families.removeAll(QLatin1String(alias));
        if (!families.isEmpty())
            QSKIP(
                qPrintable(QStringLiteral("this test needs a process without fonts; it has %1").arg(families.front())));
    }
    void cleanupTestCase() { m_fixture.reset(); }

    void theWindowDrawsWithItsOwn()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        QCOMPARE(QFontInfo(fontOf(FontRole::Body)).family(), QStringLiteral("Inter"));
        QCOMPARE(QFontInfo(window.font()).family(), QStringLiteral("Inter"));
        window.workspace().feature<FileOpening>()->openFiles({m_fixture->file("a.stagewright", {"1f1b", "zb-h1"})});
        QVERIFY(WindowFixture::settle(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
        // A label is painted, and not with the same box for every letter.
        const auto inkOf = [](const QString& text) {
            QImage image(200, 30, QImage::Format_RGB32);
            image.fill(Qt::white);
            QPainter painter(&image);
            painter.setFont(fontOf(FontRole::Body));
            painter.drawText(image.rect(), Qt::AlignCenter, text);
            painter.end();
            return image;
        };
        QVERIFY(inkOf(QStringLiteral("Run")) != inkOf(QString()));
        QVERIFY(inkOf(QStringLiteral("Run")) != inkOf(QStringLiteral("Ram")));
        // Slices carry their names.
        const auto rect = window.workspace().views().timeline->rectOf({0, 0});
        QVERIFY(rect.has_value());
        const QImage image = window.workspace().views().timeline->grab().toImage();
        const double ratio = image.devicePixelRatio();
        QSet<QRgb> colours;
        for (int x = static_cast<int>(rect->left()) + 4; x < rect->right() - 4; ++x)
            for (int y = static_cast<int>(rect->top()) + 4; y < rect->bottom() - 4; ++y)
                colours << image.pixel(static_cast<int>(x * ratio), static_cast<int>(y * ratio));
        QVERIFY(colours.size() > 3);
    }

    void everyLetterIsThere()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        QStringList found = missing(&window);
        window.workspace().feature<FileOpening>()->openFiles({m_fixture->file("b.stagewright", {"1f1b", "zb-h1"})});
        QVERIFY(WindowFixture::settle(window));
        window.workspace().viewState()->select({0, 5});
        found << missing(&window);
        window.workspace().feature<RunComparing>()->show(
            {window.workspace().runs()->refs()[0], window.workspace().runs()->refs()[1]});
        QVERIFY(WindowFixture::settle(window));
        found << missing(&window);
        window.workspace().shown().showRun(window.workspace().runs()->refs()[0]);
        QVERIFY(WindowFixture::settle(window));
        window.workspace().feature<OrderEditing>()->enterEdit();
        QVERIFY(WindowFixture::settle(window));
        found << missing(&window);
        window.workspace().feature<ExplorerController>()->setShown(true);
        QVERIFY(QTest::qWaitFor([&] { return window.workspace().settled(); }, 120000));
        found << missing(&window);
        window.workspace().feature<ExplorerController>()->setShown(false);
        window.workspace().feature<LessonController>()->openShelf();
        QVERIFY(QTest::qWaitFor([&] { return window.workspace().settled(); }, 60000));
        window.workspace().feature<LessonController>()->start(QStringLiteral("latency"), false, 0);
        QVERIFY(QTest::qWaitFor([&] { return window.workspace().settled(); }, 60000));
        window.workspace().feature<PreferencesController>()->open();
        window.workspace().feature<Recording>()->openRecordDialog();
        showKeys(window.workspace());
        found << missing(&window);
        found.removeDuplicates();
        QCOMPARE(found.join(QLatin1Char('\n')), QString());
    }

    // Texts that no test shows, and tooltips that are painted: all of the window's sources.
    void everyLetterOfTheSourcesIsThere()
    {
        const QRawFont font = QRawFont::fromFont(fontOf(FontRole::Body));
        const QRegularExpression literal(QStringLiteral("\"(?:\\\\.|[^\"\\\\])*\""));
        QStringList found;
        int texts = 0;
        for (const char* folder : {"app/ui", "widgets", "traces"}) {
            QDirIterator files(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/") + QLatin1String(folder),
                               {QStringLiteral("*.cpp"), QStringLiteral("*.h"), QStringLiteral("*.def")}, QDir::Files,
                               QDirIterator::Subdirectories);
            while (files.hasNext()) {
                QFile file(files.next());
                if (file.fileName().endsWith(QLatin1String("/tikz_canvas.cpp"))) continue; // its letters become TeX
                QVERIFY(file.open(QIODevice::ReadOnly));
                for (const QString& line : QString::fromUtf8(file.readAll()).split(QLatin1Char('\n'))) {
                    if (line.trimmed().startsWith(QLatin1String("//"))) continue;
                    for (auto it = literal.globalMatch(line); it.hasNext();) {
                        const QString text = it.next().captured();
                        ++texts;
                        for (const char32_t c : text.toUcs4())
                            if (c > 126 && !font.supportsCharacter(c))
                                found << QStringLiteral("%1: U+%2 in %3")
                                             .arg(file.fileName())
                                             .arg(static_cast<uint>(c), 4, 16)
                                             .arg(text.left(40));
                    }
                }
            }
        }
        QVERIFY(texts > 3000);
        QCOMPARE(found.join(QLatin1Char('\n')), QString());
    }
};

QTEST_MAIN(TestNoFonts)
#include "tst_no_fonts.moc"
