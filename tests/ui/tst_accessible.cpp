// Accessibility: names for screen readers, slices as children of the timeline, focus by Tab, texts that fit, every
// theme.
#include <QAbstractButton>
#include <QAccessible>
#include <QAccessibleWidget>
#include <QDialog>
#include <QDockWidget>
#include <QLabel>
#include <QMenu>
#include <QScopeGuard>
#include <QSet>

#include "app/ui/notes/notes_controller.h"
#include "app/ui/search/search_controller.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/shell/key_page.h"
#include "app/ui/shell/palette_controller.h"
#include "app/ui/shell/preferences_controller.h"
#include "app/ui/sql/sql_controller.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "tests/ui/text_fit.h"
#include "tests/ui/window_fixture.h"
#include "widgets/memory/memory_view.h"
#include "widgets/record/record_dialog.h"
#include "widgets/search/find_field.h"
#include "widgets/timeline/timeline_accessible.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

namespace {

// Focusable widgets without a name.
QStringList nameless(QWidget* root)
{
    QStringList found;
    for (QWidget* widget : root->findChildren<QWidget*>()) {
        if (!widget->isVisibleTo(root) || internal(widget) || widget->focusPolicy() == Qt::NoFocus) continue;
        QAccessibleInterface* interface = QAccessible::queryAccessibleInterface(widget);
        if (interface == nullptr || interface->text(QAccessible::Name).isEmpty()) found << described(widget);
    }
    return found;
}

} // namespace

class TestAccessible : public QObject {
    Q_OBJECT

    std::unique_ptr<WindowFixture> m_fixture;
    std::unique_ptr<MainWindow> m_window;

    bool open(QSize size = {1400, 900})
    {
        m_window = std::make_unique<MainWindow>();
        if (!WindowFixture::show(*m_window, size)) return false;
        m_window->workspace().feature<FileOpening>()->openFiles({m_fixture->file("a.stagewright", {"1f1b", "zb-h1"})});
        return WindowFixture::settle(*m_window) && m_window->workspace().shown().mode() == Shown::Mode::Run;
    }

private slots:
    void init() { m_fixture = std::make_unique<WindowFixture>(); }
    void cleanup()
    {
        m_window.reset();
        m_fixture.reset();
    }

    void slicesAreChildrenOfTheTimeline()
    {
        QVERIFY(open());
        TimelineView* view = m_window->workspace().views().timeline;
        QAccessibleInterface* chart = QAccessible::queryAccessibleInterface(view);
        QVERIFY(chart != nullptr);
        QCOMPARE(chart->role(), QAccessible::Chart);
        const auto slices = slicesInView(*view);
        QCOMPARE(chart->childCount(), static_cast<int>(slices.size()));
        QVERIFY(chart->childCount() >= 64);
        QAccessibleInterface* child = chart->child(3);
        QVERIFY(child != nullptr && child->isValid());
        QCOMPARE(child->parent(), chart);
        QCOMPARE(chart->indexOfChild(child), 3);
        QVERIFY(child == chart->child(3)); // the same one again
        const TimelinePanel& panel = *view->panels().front();
        const SpanId span = WindowFixture::spanOf(*panel.timeline, "1F3");
        const auto name = accessibleSliceName(panel, span);
        QCOMPARE(name, QStringLiteral("Forward, microbatch 3, rank 1, 1 unit at %1")
                           .arg(durationText(panel.toAxis(panel.timeline->spans()[span].start), panel.units)));
        // Its place, and the effect of pressing it.
        const auto at = view->rectOf({0, span});
        const QPoint middle = view->mapToGlobal(at->center().toPoint());
        QAccessibleInterface* there = chart->childAt(middle.x(), middle.y());
        QVERIFY(there != nullptr);
        QCOMPARE(there->text(QAccessible::Name), name);
        QVERIFY(there->rect().contains(middle));
        QVERIFY(!there->state().selected);
        there->actionInterface()->doAction(QAccessibleActionInterface::pressAction());
        QTRY_COMPARE(m_window->workspace().viewState()->selected().span, span);
        QVERIFY(there->state().selected);
        QVERIFY(chart->focusChild() == there);
        // Fewer in view, fewer children; earlier ones become invalid when their run is gone.
        view->selection().fitTo({0, span});
        QTRY_VERIFY(chart->childCount() < static_cast<int>(slices.size()));
        view->setPanels({});
        QCOMPARE(chart->childCount(), 0);
        QVERIFY(!there->isValid());
        QVERIFY(there->text(QAccessible::Name).isEmpty());
    }

    void everythingHasAName()
    {
        QVERIFY(open());
        m_window->workspace().feature<NotesController>()->dock()->show();
        m_window->workspace().feature<SearchController>()->dock()->show();
        m_window->workspace().feature<SqlController>()->open();
        QCOMPARE(nameless(m_window.get()).join(QStringLiteral("; ")), QString());
        auto* preferences = m_window->workspace().feature<PreferencesController>()->open();
        QCOMPARE(nameless(preferences).join(QStringLiteral("; ")), QString());
        auto* palette = m_window->workspace().feature<PaletteController>()->open();
        QCOMPARE(nameless(palette).join(QStringLiteral("; ")), QString());
        palette->close();
        QDialog* record = m_window->workspace().feature<Recording>()->openRecordDialog();
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(nameless(record).join(QStringLiteral("; ")), QString());
        record->close();
        m_window->workspace().feature<OrderEditing>()->enterEdit();
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(nameless(m_window.get()).join(QStringLiteral("; ")), QString());
        m_window->workspace().feature<OrderEditing>()->leaveEdit();
        const auto refs = m_window->workspace().runs()->refs();
        m_window->workspace().feature<RunComparing>()->show({refs[0], refs[1]});
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().shown().mode() == Shown::Mode::Compare, 20000);
        QCOMPARE(nameless(m_window.get()).join(QStringLiteral("; ")), QString());
    }

    void everyActionHasWords()
    {
        QVERIFY(open());
        for (const auto& [entry, action] : m_window->workspace().actions().all()) {
            QVERIFY2(!action->text().isEmpty() && !action->toolTip().isEmpty(), entry.id.data());
        }
    }

    void tabGoesRound()
    {
        QVERIFY(open());
        m_window->activateWindow();
        m_window->workspace().views().timeline->setFocus();
        QTRY_VERIFY(m_window->workspace().views().timeline->hasFocus());
        QSet<QWidget*> seen;
        for (int i = 0; i < 120; ++i) {
            QWidget* focus = QApplication::focusWidget();
            QVERIFY(focus != nullptr);
            QVERIFY2(focus->isVisible() && focus->isEnabled(), qPrintable(described(focus)));
            if (i > 0 && focus == m_window->workspace().views().timeline) break;
            seen << focus;
            QTest::keyClick(focus, Qt::Key_Tab);
        }
        QVERIFY(QApplication::focusWidget() == m_window->workspace().views().timeline); // all the way round
        QVERIFY(seen.contains(m_window->workspace().views().memory));
        QVERIFY(seen.contains(m_window->workspace().views().find));
        QVERIFY(seen.size() > 8);
    }

    void textsFit_data()
    {
        QTest::addColumn<QSize>("size");
        QTest::newRow("1280x720") << QSize(1280, 720);
        QTest::newRow("1600x1000") << QSize(1600, 1000);
    }
    void textsFit()
    {
        QFETCH(QSize, size);
        QVERIFY(open(size));
        QVERIFY2(m_window->minimumSizeHint().width() <= size.width(),
                 qPrintable(QString::number(m_window->minimumSizeHint().width())));
        QTest::qWait(50);
        QCOMPARE(clipped(m_window.get()).join(QStringLiteral("; ")), QString());
        auto* preferences = m_window->workspace().feature<PreferencesController>()->open();
        QTest::qWait(20);
        QCOMPARE(clipped(preferences).join(QStringLiteral("; ")), QString());
        QVERIFY(preferences->sizeHint().height() <= size.height() && preferences->sizeHint().width() <= size.width());
        preferences->close();
        m_window->workspace().feature<SqlController>()->open();
        m_window->workspace().feature<NotesController>()->dock()->show();
        QTest::qWait(20);
        QCOMPARE(clipped(m_window->workspace().feature<SqlController>()->dock()).join(QStringLiteral("; ")), QString());
        QCOMPARE(clipped(m_window->workspace().feature<NotesController>()->dock()).join(QStringLiteral("; ")),
                 QString());
        showKeys(m_window->workspace());
        auto* keys = m_window->findChild<QDialog*>(QStringLiteral("keyMap"));
        QTest::qWait(20);
        QCOMPARE(clipped(keys).join(QStringLiteral("; ")), QString());
    }

    void themesDifferAndAreNotBlank()
    {
        QVERIFY(open());
        m_window->workspace().feature<NotesController>()->dock()->show();
        m_window->workspace().feature<SqlController>()->open();
        QList<QImage> pictures;
        for (const ThemeChoice choice : {ThemeChoice::Light, ThemeChoice::Dark, ThemeChoice::HighContrast}) {
            Appearance::choose(choice);
            QVERIFY(WindowFixture::settle(*m_window));
            const QImage picture = m_window->grab().toImage();
            QSet<QRgb> colours;
            for (int y = 0; y < picture.height(); y += 7)
                for (int x = 0; x < picture.width(); x += 7) colours << picture.pixel(x, y);
            QVERIFY(colours.size() > 12);
            for (const QImage& other : pictures) QVERIFY(other != picture);
            pictures << picture;
        }
        QCOMPARE(pictures[2].pixelColor(3, pictures[2].height() - 40), QColor(Qt::black));
        Appearance::choose(ThemeChoice::System);
    }
};

QTEST_MAIN(TestAccessible)
#include "tst_accessible.moc"
