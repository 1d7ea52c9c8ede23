// The dock with kernels, links and roofline, on a GPU's step made by hand and on a simulated run.
#include <QDockWidget>
#include <QTabWidget>

#include "app/ui/explain/device_controller.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "gpu_step.h"
#include "tests/ui/window_fixture.h"
#include "widgets/device/device_panel.h"
#include "widgets/document/figure_table.h"
#include "widgets/panel/panel_parts.h"
#include "widgets/plot/plot_widget.h"
#include "widgets/record/record_dialog.h"
#include "widgets/record/record_process.h"
#include "widgets/table_copy.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

class TestDeviceWindow : public WindowTest {
    Q_OBJECT

    DevicePanel& panel() { return *m_window->workspace().feature<DeviceController>()->panel(); }
    static QString cell(const FigureTable& table, int row, const char* title)
    {
        for (int column = 0; column < table.model()->columnCount(); ++column)
            if (table.model()->headerData(column, Qt::Horizontal).toString() == QLatin1String(title))
                return table.model()->index(row, column).data().toString();
        return {};
    }
    QString figures() // of the page shown
    {
        QStringList texts;
        for (const PanelSection* one : panel().pages()->currentWidget()->findChildren<PanelSection*>())
            texts << one->plainText();
        return texts.join(QLatin1Char('\n'));
    }
    void openDock()
    {
        m_window->workspace().actions()["deviceTables"]->trigger();
        QVERIFY(WindowFixture::settle(*m_window));
    }
    void openGpuRun()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("gpu.stagewright"));
        {
            auto file = RunFile::open(path.toStdString(), OpenMode::Create);
            QVERIFY(file.has_value() && (*file)->add(samples::gpuRun()).has_value());
        }
        QVERIFY(WindowFixture::open(*m_window, {path}));
    }

private slots:
    void initTestCase() { QVERIFY2(WindowFixture::recordsWithBuiltProgram(), "the program stagewright is not built"); }
    void kernelsByOpAndWhereTheyAre()
    {
        openGpuRun();
        openDock();
        QVERIFY(m_window->workspace().feature<DeviceController>()->dock()->isVisible());
        FigureTable& kernels = *panel().table(0);
        QCOMPARE(kernels.model()->rowCount(), 6);
        QCOMPARE(cell(kernels, 0, "Kernel or copy"), QStringLiteral("gemm")); // by total, F's 140 µs first
        QCOMPARE(cell(kernels, 0, "Op"), QStringLiteral("F"));
        QCOMPARE(cell(kernels, 0, "Class"), QStringLiteral("Matrix product"));
        QCOMPARE(cell(kernels, 0, "Calls"), QStringLiteral("2"));
        QVERIFY2(figures().contains(QStringLiteral("Kernels and copies: 9")), qPrintable(figures()));
        // 40 µs of 2 × 400 µs
        QVERIFY2(panel().lineText().contains(QStringLiteral("5.00 %")), qPrintable(panel().lineText()));
        kernels.setCurrentIndex(kernels.model()->index(0, 0));
        const SpanRef selected = m_window->workspace().viewState()->selected();
        QVERIFY(selected.valid());
        const Timeline& timeline = *m_window->workspace().views().timeline->panels().front()->timeline;
        QCOMPARE(timeline.nameOf(timeline.spans()[selected.span]), std::string("gemm"));
        QCOMPARE(timeline.spans()[selected.span].duration(), Nanos(100'000)); // the longer of its two
        QCOMPARE(tableOf(kernels).rows.size(), 6);
    }

    void linksAndRoofline()
    {
        openGpuRun();
        openDock();
        panel().pages()->setCurrentIndex(1);
        QCOMPARE(panel().table(1)->model()->rowCount(), 2);
        QCOMPARE(cell(*panel().table(1), 0, "To rank"), QStringLiteral("1"));
        QVERIFY2(figures().contains(QStringLiteral("100.0 %")), qPrintable(figures()));
        panel().pages()->setCurrentIndex(2);
        FigureTable& rows = *panel().table(2);
        QCOMPARE(rows.model()->rowCount(), 2);
        QVERIFY(panel().plot()->isVisible());
        QVERIFY(panel().plot()->accessibleDescription().contains(QStringLiteral("F: ")));
        const auto below = [&] { // its letter; the page may not have been laid out yet
            const QImage picture = panel().plot()->grab().toImage();
            const QPointF at = panel().plot()->itemRect(0).center() + QPointF(0, 6);
            return picture.pixelColor(at.toPoint() * picture.devicePixelRatio());
        };
        QTRY_COMPARE(below(), m_window->workspace().theme().of(OpKind::Forward).fill);
        QVERIFY(QRectF(panel().plot()->rect()).contains(panel().plot()->itemRect(0).center()));
    }

    void aRunWithoutKernelsSaysSo()
    {
        QVERIFY(WindowFixture::open(*m_window, {m_fixture->file("cpu.stagewright", {"1f1b"})}));
        openDock();
        QVERIFY(panel().table(0) == nullptr);
        QVERIFY2(panel().lineText().contains(QStringLiteral("no kernels")), qPrintable(panel().lineText()));
        panel().pages()->setCurrentIndex(2);
        QVERIFY(!panel().plot()->isVisible());
        QVERIFY2(panel().lineText().contains(QStringLiteral("GPU")), qPrintable(panel().lineText()));
        m_window->workspace().actions()["deviceTables"]->trigger();
        QVERIFY(!m_window->workspace().feature<DeviceController>()->dock()->isVisible());
    }

    // On the fake device, as on a GPU; then compared with the processor's run.
    void aGpuRunIsRecordedAndCompared()
    {
        if (!QFileInfo::exists(QStringLiteral(STAGEWRIGHT_FAKE_CUDA))) QSKIP("the fake device is not built");
        qputenv("STAGEWRIGHT_CUDA_MODULE", STAGEWRIGHT_FAKE_CUDA);
        QVERIFY(WindowFixture::show(*m_window));
        const QString target = m_fixture->dir.filePath(QStringLiteral("both.stagewright"));
        QList<qint64> ids;
        for (const char* backend : {"", "cuda"}) {
            RecordDialog* dialog = m_window->workspace().feature<Recording>()->openRecordDialog();
            Setup settings = WindowFixture::tinyRecording();
            settings.backend = backend;
            settings.clock = "virtual";
            if (*backend != 0) {
                settings.precision = "fp32";
                settings.sharing = "serialised";
            }
            dialog->setSetup(settings);
            QVERIFY2(dialog->faultText().isEmpty(), qPrintable(dialog->faultText()));
            dialog->reject();
            QSignalSpy ended(m_window->workspace().feature<Recording>()->process(), &RecordProcess::finished);
            m_window->workspace().feature<Recording>()->startRecording(settings, target, *backend == 0);
            QVERIFY(ended.wait(120000));
            QVERIFY2(m_window->workspace().feature<Recording>()->process()->state() == RecordProcess::State::Finished,
                     qPrintable(m_window->workspace().feature<Recording>()->process()->errorMessage()));
            QVERIFY(!m_window->workspace().feature<Recording>()->process()->devices().isEmpty());
            QVERIFY(WindowFixture::settle(*m_window, 60000));
        }
        qunsetenv("STAGEWRIGHT_CUDA_MODULE");
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().runs()->refs().size() == 2 && m_window->workspace().settled(),
                                 60000);
        m_window->workspace().feature<RunComparing>()->show(
            {{RunLibrary::normalised(target), 1}, {RunLibrary::normalised(target), 2}});
        QTRY_COMPARE_WITH_TIMEOUT(m_window->workspace().shown().mode(), Shown::Mode::Compare, 60000);
        QVERIFY(WindowFixture::settle(*m_window, 60000));
        const auto fact = [](const RunView& view, const char* key) {
            for (const auto& [name, value] : view.run->configuration)
                if (name == key) return QString::fromStdString(value);
            return QString();
        };
        QCOMPARE(fact(*m_window->workspace().shown().view(), "backend"), QStringLiteral("cpu"));
        QCOMPARE(fact(*m_window->workspace().shown().other(), "backend"), QStringLiteral("cuda"));
        QCOMPARE(setupOf(*m_window->workspace().shown().other()->run).sharing, std::string("serialised"));
        QVERIFY(m_window->workspace().shown().comparison() != nullptr);
    }
};

QTEST_MAIN(TestDeviceWindow)
#include "tst_device_window.moc"
