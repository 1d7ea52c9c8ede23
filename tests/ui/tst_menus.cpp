// What the window offers, line by line: menus, toolbars, command palette, key page and the views that --show opens. The
// lines are in tests/data/window/actions.txt; whoever changes one on purpose copies the file that the failed test
// names.
#include <QDialog>
#include <QDir>
#include <QLabel>
#include <QMenu>
#include <QMenuBar>
#include <QToolBar>
#include <QtTest>

#include "app/ui/program/command_line.h"
#include "app/ui/program/showing.h"
#include "app/ui/shell/features.h"
#include "app/ui/shell/key_page.h"
#include "app/ui/shell/palette_controller.h"
#include "tests/ui/window_fixture.h"
#include "widgets/palette/command_palette.h"

using namespace stagewright;

namespace {

// Without empty ones at the end.
QString joined(QStringList parts)
{
    while (!parts.isEmpty() && parts.last().isEmpty()) parts.removeLast();
    return parts.join(QStringLiteral(" | "));
}

QString keysOf(const QAction& action)
{
    QStringList keys;
    for (const QKeySequence& key : action.shortcuts()) keys << key.toString(QKeySequence::PortableText);
    return keys.join(QLatin1Char(' '));
}

QString lineOf(const QAction& action)
{
    if (action.isSeparator()) return QStringLiteral("----");
    const QString check = action.isCheckable() ? QStringLiteral("checkable") : QString();
    return joined({action.objectName(), action.text(), keysOf(action), action.statusTip(), action.toolTip(), check});
}

void addMenu(QStringList& lines, const QList<QAction*>& actions, const QString& indent)
{
    for (const QAction* action : actions) {
        if (const QMenu* menu = action->menu()) {
            lines << indent + menu->title();
            addMenu(lines, menu->actions(), indent + QStringLiteral("    "));
        } else {
            lines << indent + lineOf(*action);
        }
    }
}

void addToolBars(QStringList& lines, const MainWindow& window)
{
    for (const QToolBar* bar : window.findChildren<QToolBar*>()) {
        lines << bar->objectName();
        for (QAction* action : bar->actions()) {
            const QWidget* widget = bar->widgetForAction(action);
            const QString name = action->objectName().isEmpty() ? QString::fromLatin1(widget->metaObject()->className())
                                                                : action->objectName();
            lines << joined({QStringLiteral("    ") + name, action->iconText(), widget->objectName()});
        }
    }
}

// Every action in the palette's order with what it shows of it.
void addPalette(QStringList& lines, MainWindow& window)
{
    lines << QString() << QStringLiteral("palette, nothing is open");
    CommandPalette* palette = window.workspace().feature<PaletteController>()->open();
    for (int row = 0; row < palette->model()->rowCount(); ++row) {
        const PaletteEntry& entry = *palette->model()->entry(row);
        if (entry.id.startsWith(QLatin1String("action:")))
            lines << joined({entry.id.mid(7), entry.title, entry.detail.trimmed(), entry.keys, entry.disabled});
    }
    palette->close();
}

// The actions that are disabled, and why.
void addDisabled(QStringList& lines, MainWindow& window, const QString& mode)
{
    lines << QString() << QStringLiteral("disabled, %1").arg(mode);
    CommandPalette* palette = window.workspace().feature<PaletteController>()->open();
    for (int row = 0; row < palette->model()->rowCount(); ++row)
        if (const PaletteEntry& entry = *palette->model()->entry(row); !entry.disabled.isEmpty())
            lines << joined({entry.id.mid(7), entry.disabled});
    palette->close();
}

void addKeyPage(QStringList& lines, MainWindow& window)
{
    lines << QString() << QStringLiteral("key page");
    showKeys(window.workspace());
    const auto* page = window.findChild<QDialog*>(QStringLiteral("keyMap"));
    for (const QLabel* label : page->findChildren<QLabel*>()) lines << label->text();
    showKeys(window.workspace());
}

// A picture of the window once two in a row are the same.
QImage still(MainWindow& window)
{
    QImage last, now = window.grab().toImage();
    const bool same = QTest::qWaitFor([&] {
        last = std::exchange(now, window.grab().toImage());
        return last == now;
    });
    return same ? now : QImage();
}

void addShown(QStringList& lines)
{
    lines << QString() << QStringLiteral("--show");
    for (const QString& line : helpText().split(QLatin1Char('\n')))
        if (line.contains(QLatin1String("--show"))) lines << line;
    lines << parseCommandLine({QStringLiteral("--show"), QStringLiteral("nothing")}).fault;
}

} // namespace

class TestMenus : public QObject {
    Q_OBJECT

private slots:
    void whatTheWindowOffers()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        QStringList lines{QStringLiteral("menus")};
        addMenu(lines, window.menuBar()->actions(), {});
        lines << QString() << QStringLiteral("toolbars");
        addToolBars(lines, window);
        addPalette(lines, window);
        addKeyPage(lines, window);
        addShown(lines);

        QVERIFY(WindowFixture::open(window, {fixture.file("a.stagewright", {"1f1b", "zb-h1"})}));
        QVERIFY(window.workspace().shown().mode() == Shown::Mode::Run);
        addDisabled(lines, window, QStringLiteral("a run is shown"));
        window.workspace().feature<OrderEditing>()->enterEdit();
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().shown().mode() == Shown::Mode::Edit && window.workspace().settled(),
                                 20000);
        addDisabled(lines, window, QStringLiteral("editing"));
        window.workspace().feature<OrderEditing>()->leaveEdit();
        const auto refs = window.workspace().runs()->refs();
        window.workspace().feature<RunComparing>()->show({refs[0], refs[1]});
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().shown().mode() == Shown::Mode::Compare && window.workspace().settled(), 20000);
        addDisabled(lines, window, QStringLiteral("comparing"));

        QFile known(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/window/actions.txt"));
        const QStringList wanted = known.open(QIODevice::ReadOnly)
                                       ? QString::fromUtf8(known.readAll()).split(QLatin1Char('\n'))
                                       : QStringList();
        lines << QString();
        if (lines == wanted) return;
        QFile found(QDir::temp().filePath(QStringLiteral("stagewright_actions.txt")));
        QVERIFY(found.open(QIODevice::WriteOnly));
        found.write(lines.join(QLatin1Char('\n')).toUtf8());
        qsizetype at = 0;
        while (at < lines.size() && at < wanted.size() && lines[at] == wanted[at]) ++at;
        QFAIL(qPrintable(QStringLiteral("line %1 is \"%2\", expected: \"%3\"; %4 has all lines")
                             .arg(at + 1)
                             .arg(lines.value(at), wanted.value(at), found.fileName())));
    }

    // Every name of --show changes what the window shows of a measured run, or opens a dialog over it.
    void everyNameOfShowOpensSomething_data()
    {
        QTest::addColumn<QString>("name");
        for (const ShowEntry& entry : allShown()) QTest::newRow(entry.name) << QString::fromLatin1(entry.name);
    }
    void everyNameOfShowOpensSomething()
    {
        QFETCH(QString, name);
        WindowFixture fixture;
        const QString file = fixture.dir.filePath(QStringLiteral("measured.stagewright"));
        QVERIFY(QFile::copy(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs/shards.stagewright"), file));
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {file}));
        QVERIFY(WindowFixture::finish(window));
        const CommandLine line = parseCommandLine({file, QStringLiteral("--show"), name});
        QCOMPARE(line.fault, QString());
        const ShowEntry* entry = findShown(name);
        QVERIFY((entry->view != nullptr) != (entry->dialog != nullptr));
        if (entry->dialog != nullptr) {
            const ShownDialog shown = openDialog(window, *entry, {}, true);
            QCOMPARE(shown.fault, QString());
            QVERIFY(shown.dialog->isVisible());
            shown.dialog->close();
            return;
        }
        const QImage before = still(window);
        QVERIFY(!before.isNull());
        showView(window, line);
        QVERIFY(WindowFixture::finish(window));
        QVERIFY(still(window) != before);
    }
};

QTEST_MAIN(TestMenus)
#include "tst_menus.moc"
