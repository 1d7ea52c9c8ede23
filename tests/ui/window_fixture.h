// A window under test: its own settings, simulated runs in its own file, and waiting until it is settled.
#pragma once

#include <QFileInfo>
#include <QSettings>
#include <QTemporaryDir>
#include <QtTest>

#include "app/ui/exchange/export_controller.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/shell/main_window.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/library/registry.h"
#include "traces/report/run_report.h"
#include "traces/run/simulated_run.h"
#include "traces/store/run_file.h"
#include "widgets/compare/compare_panel.h"
#include "widgets/edit/edit_overlay.h"
#include "widgets/edit/edit_panel.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/memory/memory_view.h"
#include "widgets/panel/side_panel.h"
#include "widgets/preferences/preferences.h"
#include "widgets/record/record_process.h"
#include "widgets/record/record_setup.h"
#include "widgets/runs/runs_panel.h"
#include "widgets/search/find_field.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

struct WindowFixture {
    QTemporaryDir dir;

    WindowFixture() { QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, dir.path()); }

    // The recording program is the one built beside the test. False: not built.
    static bool recordsWithBuiltProgram()
    {
        const QString program = QStringLiteral(STAGEWRIGHT_BINARY_DIR "/stagewright");
        qputenv("STAGEWRIGHT_PROGRAM", program.toLocal8Bit());
        return QFileInfo(program).isExecutable();
    }

    static Run simulated(const char* name, int ranks = 4, int microbatches = 8)
    {
        const Schedule schedule = *makeSchedule(name, Shape{ranks, microbatches, 0});
        CostModel::UnitCosts unit;
        unit.latency = 0.05;
        return *simulatedRun(schedule, CostModel::uniform(schedule, unit));
    }

    QString file(const char* name, std::initializer_list<const char*> schedules, int ranks = 4, int microbatches = 8)
    {
        const QString path = dir.filePath(QString::fromLatin1(name));
        auto opened = RunFile::open(path.toStdString(), OpenMode::Create);
        if (!opened) return {};
        for (const char* schedule : schedules)
            if (!(*opened)->add(simulated(schedule, ranks, microbatches))) return {};
        return path;
    }

    // A recording of under a second.
    static Setup tinyRecording()
    {
        Setup s = usualRecording();
        s.schedules = {"zb-h1"};
        s.ranks = 2;
        s.microbatches = 4;
        s.model = "layers=4,hidden=32,heads=2,seq=16";
        s.microbatchSize = 1;
        s.steps = 2;
        s.warmup = 0;
        s.clock = "virtual";
        return s;
    }

    static bool settle(MainWindow& window, int timeout = 20000)
    {
        return QTest::qWaitFor([&] { return window.workspace().settled(); }, timeout);
    }
    // Settled, and no answer to a request that was dropped can still come.
    static bool finish(MainWindow& window)
    {
        if (!settle(window)) return false;
        QThreadPool::globalInstance()->waitForDone();
        QCoreApplication::processEvents();
        return settle(window);
    }
    static bool show(MainWindow& window, QSize size = {1400, 900})
    {
        window.resize(size);
        window.show();
        return QTest::qWaitForWindowExposed(&window);
    }
    // Shown with these files, read.
    static bool open(MainWindow& window, const QStringList& files, QSize size = {1400, 900})
    {
        if (!show(window, size)) return false;
        window.workspace().feature<FileOpening>()->openFiles(files);
        return settle(window);
    }
    // A key to whatever has the focus, as the keyboard sends it.
    static void press(int key, Qt::KeyboardModifiers modifiers = {})
    {
        QWidget* focus = QApplication::focusWidget();
        if (focus == nullptr) focus = QApplication::activeWindow();
        QVERIFY(focus != nullptr);
        QTest::keyClick(focus, static_cast<Qt::Key>(key), modifiers);
    }
    // The keys that zoom, pan and step from op to op do so, from a view of all with nothing selected; afterwards an op
    // is.
    static void walkByKeys(MainWindow& window)
    {
        ViewState& state = *window.workspace().viewState();
        const TimeRange all = state.visible();
        press(Qt::Key_W);
        QVERIFY(state.visible().duration() < all.duration());
        const TimeRange closer = state.visible();
        press(Qt::Key_D);
        QVERIFY(state.visible().begin > closer.begin);
        press(Qt::Key_A);
        press(Qt::Key_S);
        QVERIFY(state.visible().duration() > closer.duration());
        press(Qt::Key_Period);
        QVERIFY(state.selected().valid());
    }
    // Centre of an op's slice in the timeline view.
    static QPoint centre(MainWindow& window, SpanRef ref)
    {
        const auto rect = window.workspace().views().timeline->rectOf(ref);
        return rect ? rect->center().toPoint() : QPoint(-1, -1);
    }
    static SpanId spanOf(const Timeline& timeline, const char* text)
    {
        for (SpanId id = 0; id < timeline.spans().size(); ++id)
            if (timeline.nameOf(timeline.spans()[id]) == text) return id;
        return noSpan;
    }
    static void drag(QWidget* view, QPoint from, QPoint to)
    {
        QTest::mouseMove(view, from);
        QTest::mousePress(view, Qt::LeftButton, {}, from);
        for (int i = 1; i <= 4; ++i) {
            const QPoint at = from + (to - from) * i / 4;
            QMouseEvent move(QEvent::MouseMove, at, view->mapToGlobal(at), Qt::NoButton, Qt::LeftButton,
                             Qt::NoModifier);
            QCoreApplication::sendEvent(view, &move);
        }
        QTest::mouseRelease(view, Qt::LeftButton, {}, to);
    }
};

// A fresh visible window for each test function.
class WindowTest : public QObject {
    Q_OBJECT

protected:
    std::unique_ptr<WindowFixture> m_fixture;
    std::unique_ptr<MainWindow> m_window;

protected slots:
    void init()
    {
        m_fixture = std::make_unique<WindowFixture>();
        m_window = std::make_unique<MainWindow>();
        QVERIFY(WindowFixture::show(*m_window));
    }
    void cleanup()
    {
        m_window.reset();
        m_fixture.reset();
    }
};

} // namespace stagewright
