// The library browser: every schedule has a page with a picture, aliases are found, faults offer a shape that works,
// and all of it works by keyboard alone.
#include <QComboBox>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QtTest>

#include "widgets/library/schedule_browser.h"
#include "widgets/library/schedule_groups.h"

using namespace stagewright;

class TestScheduleBrowser : public QObject {
    Q_OBJECT
private slots:
    void everySchedule()
    {
        ScheduleBrowser browser(Theme::light());
        QCOMPARE(browser.listed().size(), static_cast<qsizetype>(allSchedules().size()));
        for (const ScheduleInfo& info : allSchedules()) {
            browser.choose(words(info.name));
            QTRY_VERIFY_WITH_TIMEOUT(browser.settled(), 20000);
            QCOMPARE(browser.name(), words(info.name));
            const QString page = browser.pageText();
            QVERIFY2(page.contains(words(info.summary)) && page.contains(words(info.paper)), info.name.data());
            if (browser.preview().fault) { // says so and offers a shape that works
                QVERIFY2(browser.preview().nearest, info.name.data());
                browser.findChild<QPushButton*>(QStringLiteral("nearest"))->click();
                QTRY_VERIFY_WITH_TIMEOUT(browser.settled(), 20000);
            }
            QVERIFY2(!browser.preview().fault && browser.preview().panel, info.name.data());
            QVERIFY(browser.preview().makespan > 0);
            QVERIFY(page != QString() && browser.pageText().contains(QStringLiteral("Step time")));
        }
    }

    void previewIsTheSimulation()
    {
        PreviewRequest request{"1f1b", Shape{4, 8, 0}, {}};
        const SchedulePreview plain = previewOf(request);
        QCOMPARE(plain.makespan, 33 * rankShare);
        QCOMPARE(plain.closed.makespan, 33.0);
        QCOMPARE(plain.peaks,
                 (std::vector<Bytes>{4 * activationShare, 3 * activationShare, 2 * activationShare, activationShare}));
        request.costs.latency = 0.5;
        const SchedulePreview slow = previewOf(request);
        QVERIFY(slow.makespan > plain.makespan);
        QVERIFY(slow.closed.makespan < 0); // the closed form ignores links
        request.name = "no-such";
        const SchedulePreview none = previewOf(request);
        QVERIFY(none.fault && !none.nearest && !none.panel);
    }

    void faultsOfferTheNearestShape()
    {
        const Shape bad{4, 9, 0}; // interleaved 1F1B needs whole groups of microbatches
        QVERIFY(!makeSchedule("interleaved-1f1b", bad));
        const auto nearest = nearestShape("interleaved-1f1b", bad);
        QVERIFY(nearest);
        QCOMPARE(nearest->ranks, 4);
        QVERIFY(nearest->microbatches == 8 || nearest->microbatches == 10);
        QVERIFY(makeSchedule("interleaved-1f1b", *nearest));

        ScheduleBrowser browser(Theme::light());
        browser.choose(QStringLiteral("interleaved-1f1b"));
        browser.setShape(bad);
        QTRY_VERIFY_WITH_TIMEOUT(browser.settled(), 20000);
        QVERIFY(browser.preview().fault);
        QVERIFY(!browser.findChild<QPushButton*>(QStringLiteral("primary"))->isEnabled());
        auto* use = browser.findChild<QPushButton*>(QStringLiteral("nearest"));
        QVERIFY(!use->isHidden());
        use->click();
        QTRY_VERIFY_WITH_TIMEOUT(browser.settled() && !browser.preview().fault, 20000);
        QCOMPARE(browser.shape().microbatches, nearest->microbatches);
        QVERIFY(use->isHidden());
    }

    void aliasesAreFound()
    {
        ScheduleBrowser browser(Theme::light());
        auto* search = browser.findChild<QLineEdit*>(QStringLiteral("search"));
        search->setText(QStringLiteral("no schedule is called this"));
        QVERIFY(browser.listed().isEmpty());
        for (const ScheduleInfo& info : allSchedules()) {
            const QStringList aliases = words(info.aliases).split(QLatin1Char(','), Qt::SkipEmptyParts);
            if (aliases.isEmpty()) continue;
            search->setText(aliases.front().trimmed().toUpper());
            QVERIFY2(browser.listed().contains(words(info.name)), qPrintable(aliases.front()));
        }
    }

    void keyboardAlone()
    {
        ScheduleBrowser browser(Theme::light());
        browser.show();
        QVERIFY(QTest::qWaitForWindowExposed(&browser));
        QSignalSpy created(&browser, &ScheduleBrowser::createAsked);
        auto* search = browser.findChild<QLineEdit*>(QStringLiteral("search"));
        QTRY_VERIFY(search->hasFocus());
        QTest::keyClicks(search, QStringLiteral("zb"));
        const QStringList listed = browser.listed();
        QVERIFY(!listed.isEmpty());
        QVERIFY(listed.contains(browser.name()));
        const QString first = browser.name();
        if (listed.size() > 1) {
            QTest::keyClick(search, Qt::Key_Down);
            QVERIFY(browser.name() != first || listed.back() == first);
        }
        browser.choose(QStringLiteral("zb-h1"));
        QTRY_VERIFY_WITH_TIMEOUT(browser.settled(), 20000);
        // Every field can be reached with Tab.
        QSet<QString> reached;
        for (int i = 0; i < 60; ++i) {
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
            if (QApplication::focusWidget() != nullptr) reached << QApplication::focusWidget()->objectName();
        }
        for (const char* name :
             {"ranks", "microbatches", "forward", "inputGrad", "weightGrad", "latency", "boxed", "primary", "preview"})
            QVERIFY2(reached.contains(QString::fromLatin1(name)), name);
        search->setFocus();
        QTest::keyClick(search, Qt::Key_Return);
        QCOMPARE(created.size(), 1);
        QCOMPARE(created.front().front().toString(), QStringLiteral("zb-h1"));
    }

    void parametersBecomePartOfTheName()
    {
        ScheduleBrowser browser(Theme::light());
        int seen = 0;
        for (const ScheduleInfo& info : allSchedules()) {
            browser.choose(words(info.name));
            for (const ScheduleParameter& parameter : info.parameters) {
                auto* box = browser.findChild<QComboBox*>(QStringLiteral("parameter-") + words(parameter.name));
                if (box == nullptr || box->count() < 2) continue;
                const int other = box->currentIndex() == 0 ? 1 : 0;
                const QString value = box->itemText(other);
                box->setCurrentIndex(other);
                QCOMPARE(browser.name(),
                         QStringLiteral("%1:%2=%3").arg(words(info.name), words(parameter.name), value));
                box->setCurrentText(words(parameter.fallback));
                QCOMPARE(browser.name(), words(info.name));
                ++seen;
            }
            QTRY_VERIFY_WITH_TIMEOUT(browser.settled(), 20000);
        }
        bool any = false;
        for (const ScheduleInfo& info : allSchedules())
            for (const ScheduleParameter& parameter : info.parameters)
                any = any || parameter.values.find('|') != std::string_view::npos;
        QCOMPARE(seen > 0, any);
    }

    void paintsInBothThemes()
    {
        for (const Theme* theme : {&Theme::light(), &Theme::darkTheme()}) {
            ScheduleBrowser browser(*theme);
            browser.show();
            QTRY_VERIFY_WITH_TIMEOUT(browser.settled(), 20000);
            QTest::qWait(50);
            const QImage image = browser.grab().toImage();
            QSet<QRgb> colours;
            for (int x = 0; x < image.width(); x += 3)
                for (int y = 0; y < image.height(); y += 3) colours.insert(image.pixel(x, y));
            QVERIFY(colours.contains(theme->of(OpKind::Forward).fill.rgb()));
            QVERIFY(colours.contains(theme->of(OpKind::Backward).fill.rgb()));
        }
    }
};

QTEST_MAIN(TestScheduleBrowser)
#include "tst_schedule_browser.moc"
