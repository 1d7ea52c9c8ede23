// The explorer's page: live points match simulate, selecting by mouse and keyboard, surveys, opening, saving, exports.
#include <QAbstractItemModel>
#include <QComboBox>
#include <QFile>
#include <QHeaderView>
#include <QImage>
#include <QLabel>
#include <QProcess>
#include <QScrollBar>
#include <QSlider>
#include <QSortFilterProxyModel>

#include <set>

#include "app/ui/explore/explorer_controller.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/base/small_file.h"
#include "schedules/execute/simulate.h"
#include "schedules/layout/layout.h"
#include "schedules/library/registry.h"
#include "schedules/model/mesh.h"
#include "schedules/model/partial_backward.h"
#include "traces/fit/recorded_jobs.h"
#include "traces/run/simulated_run.h"
#include "traces/store/add_runs.h"
#include "traces/store/run_file.h"
#include "widgets/record/record_dialog.h"
#include "widgets/table_copy.h"
#include "widgets/timeline/timeline_view.h"
#include "window_fixture.h"

using namespace stagewright;

class TestExplorer : public QObject {
    Q_OBJECT

    static bool settle(MainWindow& window)
    {
        return QTest::qWaitFor([&] { return window.workspace().settled(); }, 120000);
    }
    // The page in a window of this size with its first request answered; null: failed.
    static ExploreView* shown(MainWindow& window, QSize size = {1400, 900})
    {
        if (!WindowFixture::show(window, size)) return nullptr;
        window.workspace().actions()["explorer"]->trigger();
        if (!settle(window)) return nullptr;
        return window.workspace().feature<ExplorerController>()->view();
    }
    static ExploreQuestion ofShape(int ranks, int microbatches)
    {
        ExploreQuestion question;
        question.ranks = ranks;
        question.microbatches = microbatches;
        return question;
    }
    static int placesOf(const PlotWidget& plot) // its points
    {
        std::set<int> columns;
        for (const PlotItem& item : plot.plot().items) columns.insert(item.column);
        return static_cast<int>(columns.size());
    }
    static QPointF placeOf(const PlotWidget& plot, int row) { return plot.itemRect(plot.itemOf(row)).center(); }
    static int rowOf(ExploreView* view, const char* schedule)
    {
        for (int i = 0; view->rowAt(i) != nullptr; ++i)
            if (view->rowAt(i)->schedule() == schedule) return i;
        return -1;
    }

private slots:
    void pointsAreNamedInASmallWindow()
    {
        MainWindow window;
        ExploreView* view = shown(window, {1024, 700});
        QVERIFY(view != nullptr);
        const auto labels = view->pareto()->labels();
        const int places = placesOf(*view->pareto());
        QVERIFY2(static_cast<int>(labels.size()) * 2 >= places,
                 qPrintable(QStringLiteral("%1 of %2").arg(labels.size()).arg(places)));
        for (std::size_t i = 0; i < labels.size(); ++i)
            for (std::size_t j = i + 1; j < labels.size(); ++j) QVERIFY(!labels[i].intersects(labels[j]));
    }

    void titlesOfTheTableAreWhole()
    {
        MainWindow window;
        ExploreView* view = shown(window, {1600, 950});
        QVERIFY(view != nullptr);
        const QHeaderView* header = view->table()->horizontalHeader();
        for (int column = 0; column < header->count(); ++column)
            QVERIFY2(header->sectionSize(column) >= header->sectionSizeHint(column),
                     qPrintable(view->table()->model()->headerData(column, Qt::Horizontal).toString()));
    }

    void everyPointIsWhatSimulateSays()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1400, 900});
        QVERIFY(view != nullptr);
        ExploreQuestion question = ofShape(4, 8);
        question.forward = 1.5;
        question.latency = 0.25;
        question.cap = 6;
        view->form()->setQuestion(question);
        QVERIFY(settle(window));
        QVERIFY(view->rowAt(0) != nullptr);
        int good = 0;
        for (int i = 0; view->rowAt(i) != nullptr; ++i) {
            const SweepRow& row = *view->rowAt(i);
            QVERIFY(row.done);
            const auto schedule = makeSchedule(row.schedule(), shapeOf(row.point));
            QCOMPARE(row.good(), schedule.has_value());
            if (!schedule) continue;
            const SimResult result = simulate(*schedule, CostModel::uniform(*schedule, question.units())).value();
            QCOMPARE(row.makespan, figuresOf(*schedule, result).makespan);
            QVERIFY(row.peaks == result.peakActivation);
            QCOMPARE(!overCap(row, question).empty(),
                     *std::max_element(row.peaks.begin(), row.peaks.end()) > 6 * activationShare);
            ++good;
        }
        QVERIFY(good > 20);
        // no schedule beats the proven bounds
        for (const ExploreBound& bound : boundsOf(question)) {
            const int row = rowOf(view, bound.chunks == 1 ? "zb-h1" : "zbv");
            const SweepRow& at = *view->rowAt(row);
            if (at.memoryValue(at.peak()) <= bound.cap) QVERIFY(at.timeValue(at.makespan) >= bound.makespan - 1e-9);
        }
        for (int i = 0; view->rowAt(i) != nullptr; ++i)
            if (view->rowAt(i)->good())
                QVERIFY(view->rowAt(i)->timeValue(view->rowAt(i)->makespan) >= workBound(question) - 1e-6);
    }

    void slidersAndFieldsFollowEachOther()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window);
        QVERIFY(view != nullptr);
        QSlider* slider = view->form()->slider(ExploreParameter::Ranks);
        slider->setFocus();
        const int before = view->question().ranks;
        QTest::keyClick(slider, Qt::Key_Right);
        QCOMPARE(view->question().ranks, before + 1);
        QCOMPARE(view->form()->field(ExploreParameter::Ranks)->value(), before + 1.0);
        view->form()->field(ExploreParameter::Cap)->setValue(5);
        QCOMPARE(view->question().cap, 5.0);
        QCOMPARE(slider->accessibleName().isEmpty(), false);
        QVERIFY(settle(window));
        const int gpipe = rowOf(view, "gpipe");
        QVERIFY(overCap(*view->rowAt(gpipe), view->question()).find("the cap is 5.0") != std::string::npos);
        // many requests in a row: the latest is answered
        for (int m = 9; m < 40; ++m)
            view->form()->setQuestion(view->question().with(ExploreParameter::Microbatches, m));
        QVERIFY(settle(window));
        QCOMPARE(view->rowAt(gpipe)->microbatches, 39);
    }

    // Under a cap the preview, the button and the table lead with what keeps to it; without one the choice comes back.
    void aCapLeadsWithWhatFits()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window);
        QVERIFY(view != nullptr);
        QVERIFY(settle(window));
        const int before = view->selected();
        QVERIFY(before >= 0);
        const auto capped = [&](double cap) {
            view->form()->field(ExploreParameter::Cap)->setValue(cap);
            QVERIFY(settle(window));
        };
        capped(view->rowAt(before)->memoryValue(view->rowAt(before)->peak()) / 2);
        const SweepRow* now = view->rowAt(view->selected());
        QVERIFY(now != nullptr && overCap(*now, view->question()).empty());
        const QAbstractItemModel* table = view->table()->model();
        bool behind = false; // from the first one over the cap on
        for (int row = 0; row < table->rowCount(); ++row) {
            const int source =
                static_cast<const QSortFilterProxyModel*>(table)->mapToSource(table->index(row, 0)).row();
            const bool over = !overCap(*view->rowAt(source), view->question()).empty();
            QVERIFY2(over || !behind || !view->rowAt(source)->good(),
                     "a schedule within the cap is behind one over it");
            behind = behind || over;
        }
        QVERIFY(behind);
        capped(0);
        QCOMPARE(view->selected(), before);
    }

    // Parameters are words in every title.
    void titlesAreWords()
    {
        for (const std::string& name : exploredSchedules())
            QVERIFY2(shownTitle(name).find('=') == std::string::npos, shownTitle(name).c_str());
        QCOMPARE(QString::fromStdString(shownTitle("chimera:f=2:join=doubling")),
                 QStringLiteral("Chimera, 2 pairs, doubled forwards"));
    }

    void pointsArePickedByMouseAndKeyboard()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1500, 950});
        QVERIFY(view != nullptr);
        PlotWidget* plot = view->pareto();
        const int gpipe = rowOf(view, "gpipe");
        QTest::mouseClick(plot, Qt::LeftButton, {}, placeOf(*plot, gpipe).toPoint());
        QCOMPARE(view->selected(), gpipe);
        QCOMPARE(view->table()->selectedRow(), gpipe);
        QTRY_COMPARE_WITH_TIMEOUT(view->miniature()->title(), QString("GPipe"), 20000);
        plot->setFocus();
        QTest::keyClick(plot, Qt::Key_Home);
        QVERIFY(view->selected() >= 0 && view->selected() != gpipe);
        const double first = placeOf(*plot, view->selected()).x();
        QTest::keyClick(plot, Qt::Key_Right);
        QVERIFY(placeOf(*plot, view->selected()).x() >= first);
        // labels are in the plot and overlap nothing
        const auto labels = plot->labels();
        QVERIFY(labels.size() > 5);
        for (std::size_t i = 0; i < labels.size(); ++i) {
            QVERIFY(QRectF(plot->rect()).contains(labels[i]));
            for (std::size_t j = i + 1; j < labels.size(); ++j) QVERIFY(!labels[i].intersects(labels[j]));
        }
        // Enter opens the point on the timeline
        view->select(rowOf(view, "zb-h1"));
        QTest::keyClick(plot, Qt::Key_Return);
        QVERIFY(fixture.settle(window));
        QTRY_COMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
        QVERIFY(!window.workspace().feature<ExplorerController>()->shown());
        QVERIFY(!window.workspace().actions()["explorer"]->isChecked());
        QCOMPARE(window.workspace().views().timeline->panels().front()->timeline->ranks(), 8);
        // and the page comes back with the selection
        QVERIFY(shown(window) != nullptr);
        QCOMPARE(view->selected(), rowOf(view, "zb-h1"));
    }

    void theTableSortsAndTicks()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window);
        QVERIFY(view != nullptr);
        ExploreTable* table = view->table();
        table->sortByColumn(ExploreModel::Peak, Qt::AscendingOrder);
        double last = -1;
        for (int i = 0; i < table->model()->rowCount(); ++i) {
            const double peak = table->model()->index(i, ExploreModel::Peak).data(ExploreModel::SortRole).toDouble();
            QVERIFY(peak >= last);
            last = peak;
        }
        const std::size_t before = view->ticked().size();
        view->select(rowOf(view, "gpipe"));
        table->setFocus();
        QTest::keyClick(table, Qt::Key_Space);
        QCOMPARE(view->ticked().size(), before + 1);
        QVERIFY(settle(window));
        QTest::keyClick(table, Qt::Key_Return);
        QVERIFY(fixture.settle(window));
        QTRY_COMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
    }

    void aLargeScreenHasRoomForNames()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1500, 950});
        QVERIFY(view != nullptr);
        const ExploreTable* table = view->table();
        const int narrow = table->columnWidth(ExploreModel::Schedule);
        window.resize(2560, 1440);
        const QAbstractItemView* any = table; // whose hint is public
        QTRY_VERIFY(table->columnWidth(ExploreModel::Schedule) >= any->sizeHintForColumn(ExploreModel::Schedule));
        QVERIFY(table->columnWidth(ExploreModel::Schedule) >= narrow);
        QVERIFY(table->horizontalScrollBar()->maximum() == 0);                 // with every figure and note
        table->horizontalHeader()->resizeSection(ExploreModel::Schedule, 180); // the reader's width stays
        window.resize(2400, 1300);
        QVERIFY(settle(window));
        QCOMPARE(table->columnWidth(ExploreModel::Schedule), 180);
    }

    void surveysAreWhatSimulateSays()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1500, 950});
        QVERIFY(view != nullptr);
        ExploreQuestion question = ofShape(4, 8);
        const LinesPicture lines = linesOf(question, ExploreParameter::Latency, {"1f1b", "zb-h1"});
        const auto points = pointsOf(lines);
        QCOMPARE(points.size(), lines.rows.size());
        for (const Setup& point : points) QCOMPARE(point.ranks, 4);
        HeatPicture heat =
            heatOf(question, ExploreParameter::Microbatches, ExploreParameter::Ranks, {"1f1b", "zb-h1", "pipedream"});
        const auto cells = pointsOf(heat);
        heat.rows = sweep(cells);
        for (std::size_t cell = 0; cell < heat.cells(); ++cell) {
            QVERIFY(heat.done(cell));
            const int winner = heat.winner(cell);
            QVERIFY(winner >= 0 && winner < 2); // stale weights are excluded
            for (std::size_t i = 0; i < 2; ++i)
                if (heat.row(cell, i).good())
                    QVERIFY(heat.row(cell, static_cast<std::size_t>(winner)).makespan <= heat.row(cell, i).makespan);
        }
        // on screen: both charts are drawn and navigated by keys
        QTest::keyClick(view->lines(), Qt::Key_Right);
        QTest::keyClick(view->lines(), Qt::Key_Right);
        QCOMPARE(view->lines()->plot().items[static_cast<std::size_t>(view->lines()->chosen())].column, 1);
        view->setChart(ExploreChart::Heat);
        QVERIFY(settle(window));
        QTest::keyClick(view->heat(), Qt::Key_Right);
        QTest::keyClick(view->heat(), Qt::Key_Right);
        QCOMPARE(view->heat()->chosen(), 1);
        const ExploreQuestion before = view->question();
        QTest::keyClick(view->heat(), Qt::Key_Return); // the cell becomes the question
        QVERIFY(!(view->question() == before));
        QVERIFY(settle(window));
    }

    void pointsAreSavedAsRuns()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window);
        QVERIFY(view != nullptr);
        const QString path = fixture.dir.filePath("explored.stagewright");
        for (const char* name : {"zb-h1", "v-half"}) {
            bool done = false;
            window.workspace().feature<ExplorerController>()->saveAsRun(view->rowAt(rowOf(view, name))->point, path,
                                                                        [&](const Result<void>& saved) {
                                                                            QVERIFY(saved.has_value());
                                                                            done = true;
                                                                        });
            QVERIFY(QTest::qWaitFor([&] { return done; }, 20000));
        }
        auto file = RunFile::open(path.toStdString(), OpenMode::Read);
        QVERIFY(file.has_value());
        const auto runs = (*file)->runs().value();
        QCOMPARE(runs.size(), std::size_t{2});
        QCOMPARE(runs[0].scheduleName, std::string("zb-h1"));
        const Run run = (*file)->read(runs[0].id).value();
        QCOMPARE(run.timeline->end() - run.timeline->begin(), view->rowAt(rowOf(view, "zb-h1"))->makespan);
        bool exported = false;
        window.workspace().feature<ExplorerController>()->saveAsRun(
            view->rowAt(0)->point, QStringLiteral("/nowhere/x.stagewright"), [&](const Result<void>& saved) {
                QVERIFY(!saved.has_value());
                exported = true;
            });
        QVERIFY(QTest::qWaitFor([&] { return exported; }, 20000));
        QVERIFY(!window.workspace().banner()->text().isEmpty());
    }

    void tablesAndPlotsAreExported()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window);
        QVERIFY(view != nullptr);
        const QString csv = fixture.dir.filePath("t.csv");
        QVERIFY(window.workspace().feature<ExplorerController>()->writeTable(csv).has_value());
        QFile table(csv);
        QVERIFY(table.open(QIODevice::ReadOnly));
        QVERIFY(table.readLine().startsWith("schedule,ranks,microbatches"));
        for (const ExplorePlot plot : {ExplorePlot::Pareto, ExplorePlot::Lines, ExplorePlot::Heat}) {
            for (const char* suffix : {"svg", "pdf", "png", "csv", "tex"}) {
                const QString path = fixture.dir.filePath(
                    QStringLiteral("p%1.%2").arg(static_cast<int>(plot)).arg(QLatin1String(suffix)));
                QVERIFY(window.workspace().feature<ExplorerController>()->writePicture(plot, path).has_value());
                const bool text = path.endsWith("csv") || path.endsWith("tex"); // of no cells yet: its frame
                QVERIFY2(QFileInfo(path).size() > (text ? 30 : 1000), qPrintable(path));
            }
        }
        QFile svg(fixture.dir.filePath("p0.svg"));
        QVERIFY(svg.open(QIODevice::ReadOnly));
        const QByteArray text = svg.readAll();
        QVERIFY(text.contains("Simulated with unit costs"));
        QVERIFY(text.contains("Schedules by activation peak"));
        QVERIFY(!text.contains("<image"));
        QVERIFY(!window.workspace()
                     .feature<ExplorerController>()
                     ->writePicture(ExplorePlot::Pareto, fixture.dir.filePath("p.gif"))
                     .has_value());
    }

    // The page State: its topics by keyboard alone, answers as the fields ask, exported pictures with their setup.
    void topicsOfStateByKeyboard()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1024, 700});
        QVERIFY(view != nullptr);
        StateView* state = view->state();
        view->setPage(ExplorePage::State);
        QVERIFY(settle(window));
        QVERIFY(!view->table()->isVisible()); // of the other page
        QVERIFY(!copyableTable(state->picture()->grid()).isEmpty());
        auto* topics = state->findChild<QTabBar*>(QStringLiteral("stateTopics"));
        topics->setFocus();
        QTest::keyClick(topics, Qt::Key_Right);
        QCOMPARE(state->topic(), StateTopic::Mixed);
        QVERIFY(settle(window));
        QCOMPARE(state->mixed()->items(), 9);
        QVERIFY(state->mixed()->isVisible() && !state->picture()->isVisible() && !view->form()->isVisible());
        state->speedsField()->setFocus();
        state->speedsField()->selectAll();
        QTest::keyClicks(state->speedsField(), "2,1,x");
        QVERIFY(settle(window));
        QCOMPARE(state->mixed()->items(), 0);
        QVERIFY(state->mixedQuestion().error().message.find("'x'") != std::string::npos);
        QTest::keyClick(state->speedsField(), Qt::Key_Backspace);
        QTest::keyClicks(state->speedsField(), "1,1");
        QVERIFY(settle(window));
        QCOMPARE(state->mixed()->items(), 0); // four ranks, three sizes of memory
        state->memoriesField()->setFocus();
        state->memoriesField()->selectAll();
        QTest::keyClicks(state->memoriesField(), "80");
        QVERIFY(settle(window));
        QCOMPARE(state->mixed()->items(), 12);
        for (int i = 0; i < 40 && window.focusWidget() != state->mixed(); ++i)
            QTest::keyClick(window.focusWidget(), Qt::Key_Tab);
        QCOMPARE(window.focusWidget(), state->mixed());
        QTest::keyClick(state->mixed(), Qt::Key_End);
        QCOMPARE(state->mixed()->chosen(), 11);
        topics->setFocus();
        QTest::keyClick(topics, Qt::Key_Right);
        QVERIFY(settle(window));
        QCOMPARE(state->topic(), StateTopic::Cuts);
        QVERIFY(state->cuts()->isVisible());
        state->replicas()->setValue(1); // two
        QVERIFY(QString::fromStdString(state->cuts()->plot().title).contains("3/4 = 75"));
        state->cutsField()->setFocus();
        QTest::keyClicks(state->cutsField(), "0,1000");
        QCOMPARE(state->cuts()->items(), 0);
        QVERIFY(!state->cutAnswer().error.empty());
        state->cutsField()->setText("0,15");
        QCOMPARE(state->cuts()->items(), 32);
        for (const StateTopic topic : {StateTopic::Stages, StateTopic::Mixed, StateTopic::Cuts}) {
            state->setTopic(topic);
            QVERIFY(settle(window));
            const QString path = fixture.dir.filePath(QStringLiteral("s%1.svg").arg(static_cast<int>(topic)));
            QVERIFY(
                window.workspace().feature<ExplorerController>()->writePicture(ExplorePlot::State, path).has_value());
            QFile svg(path);
            QVERIFY(svg.open(QIODevice::ReadOnly));
            const QByteArray text = svg.readAll();
            QVERIFY(text.contains(state->caption().toUtf8()));
            QVERIFY(text.contains(topic == StateTopic::Cuts ? "Computed: gpt-6.2b" : "Simulated: gpt-6.2b"));
        }
    }

    // The page Choose: ways by bar, row and cell; why one loses and the commands; pins; what can't be asked; saving.
    void waysAreChosenAndPinned()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1600, 1000});
        QVERIFY(view != nullptr);
        view->setPage(ExplorePage::Choose);
        ChooseView* page = view->ways();
        page->setField("model", QStringLiteral("gpt3-1.3b"));
        page->setField("cluster", QStringLiteral("8@a100:memory=20GB"));
        page->setField("samples", QStringLiteral("32"));
        page->setField("tried", QStringLiteral("2"));
        QVERIFY(settle(window));
        QVERIFY(page->form()->isVisibleTo(view));
        QVERIFY(!view->form()->isVisibleTo(view) && !view->table()->isVisibleTo(view));
        auto answer = page->answer();
        QVERIFY(answer != nullptr);
        const auto asked = waysSurvey(*page->question());
        QVERIFY(asked.has_value());
        QCOMPARE(answer->all.candidates.size(), asked->all.candidates.size());
        QVERIFY(answer->fits() && answer->simulated[0].has_value() && !answer->simulated[2].has_value());
        QCOMPARE(answer->simulated[0]->seconds, asked->simulated[0]->seconds);
        QCOMPARE(page->time()->items(), static_cast<int>(answer->shown.size()));
        QCOMPARE(page->table()->model()->rowCount(), static_cast<int>(answer->shown.size()));

        // bars and rows choose the same way, also sorted
        QCOMPARE(page->chosen(), 0);
        QTest::mouseClick(page->memory(), Qt::LeftButton, {},
                          page->memory()->itemRect(page->memory()->itemOf(3)).center().toPoint());
        QCOMPARE(page->chosen(), 3);
        QCOMPARE(page->time()->idOf(page->time()->chosen()), 3);
        QVERIFY(page->said().startsWith("4. ") && page->said().contains("loses to the first by"));
        QCOMPARE(page->table()->selectionModel()->selectedRows().front().row(), 3);
        page->table()->sortByColumn(0, Qt::DescendingOrder);
        page->table()->selectRow(0);
        QCOMPARE(page->chosen(), static_cast<int>(answer->shown.size()) - 1);
        page->choose(3);
        QVERIFY(page->command().startsWith("stagewright choose --model gpt3-1.3b --cluster 8@a100:memory=20GB "));

        // pinned by a button and by a cell of the map, and free again
        const Parallelism way = answer->shown[3].way;
        QTest::mouseClick(page->pinButton(), Qt::LeftButton);
        QVERIFY(settle(window));
        for (const LayoutCandidate& one : page->answer()->all.candidates)
            QVERIFY(one.way.tensor == way.tensor && one.way.pipeline == way.pipeline);
        QCOMPARE(page->degrees()->items(), 1);
        QTest::mouseClick(page->freeButton(), Qt::LeftButton);
        QVERIFY(settle(window));
        QCOMPARE(page->answer()->all.candidates.size(), answer->all.candidates.size());
        const int cell = page->degrees()->items() - 1;
        QTest::mouseDClick(page->degrees(), Qt::LeftButton, {}, page->degrees()->itemRect(cell).center().toPoint());
        QVERIFY(settle(window));
        QCOMPARE(page->degrees()->items(), 1);
        QVERIFY(page->answer()->question.pinned.starts_with("t="));

        // a way with t = 1 opens in the recording dialog as its command says; one with t > 1 says why not
        const auto first = [&](const char* pinned) {
            page->setField("pin", QString::fromLatin1(pinned));
            return settle(window);
        };
        QVERIFY(first("t=2"));
        QVERIFY(!page->trainButton()->isEnabled() && page->trainButton()->toolTip().contains("t = 2"));
        QVERIFY(first("t=1,p=4"));
        QVERIFY(page->trainButton()->isEnabled());
        QTest::mouseClick(page->trainButton(), Qt::LeftButton);
        auto* dialog = window.findChild<RecordDialog*>();
        QVERIFY(dialog != nullptr);
        const Setup setup = dialog->setup();
        const Parallelism trained = page->answer()->shown[0].way;
        QCOMPARE(setup.ranks, 4);
        QCOMPARE(setup.microbatches, trained.microbatches);
        QCOMPARE(setup.replicas, trained.replicas);
        QCOMPARE(setup.microbatchSize, static_cast<int>(trained.samples));
        QCOMPARE(QString::fromStdString(setup.model),
                 QStringLiteral("layers=24,hidden=2048,heads=16,seq=2048,vocab=50304"));
        dialog->close();
        page->setField("pin", {});

        // nothing fits; what can't be asked
        page->setField("cluster", QStringLiteral("8@a100:memory=1MB"));
        QVERIFY(settle(window));
        QVERIFY(!page->answer()->fits());
        QVERIFY(page->said().contains("It lacks"));
        page->setField("cluster", QStringLiteral("8@b900"));
        QVERIFY(settle(window));
        QVERIFY(page->answer() == nullptr);
        QVERIFY(page->time()->plot().nothing.find("cluster: unknown device 'b900'") != std::string::npos);
        QVERIFY(!page->pinButton()->isEnabled());

        // layers of a run: none is shown; one that is not there
        page->setField("cluster", QStringLiteral("8@a100"));
        QTest::mouseClick(page->measuredButton(), Qt::LeftButton);
        QVERIFY(page->question()->layersFrom.empty());
        page->setField("layers-from", QStringLiteral("nowhere"));
        QVERIFY(settle(window));
        QVERIFY(page->answer() == nullptr);
        QVERIFY(page->time()->plot().nothing.find("'nowhere' does not name a run") != std::string::npos);
        page->setField("layers-from", {});

        // the pipeline of a way as a run, and the picture
        page->setField("cluster", QStringLiteral("8@a100"));
        page->setField("pin", QStringLiteral("p=4"));
        QVERIFY(settle(window));
        auto* explorer = window.workspace().feature<ExplorerController>();
        const QString path = fixture.dir.filePath("way.stagewright");
        bool done = false;
        explorer->saveWayAsRun(0, path, [&](const Result<void>& saved) { done = saved.has_value(); });
        QVERIFY(QTest::qWaitFor([&] { return done; }, 60000));
        auto file = RunFile::open(path.toStdString(), OpenMode::Read);
        QVERIFY(file.has_value());
        const auto runs = (*file)->runs().value();
        QCOMPARE(runs.size(), std::size_t{1});
        QCOMPARE((*file)->read(runs[0].id).value().timeline->ranks(), 4);
        const QString svg = fixture.dir.filePath("ways.svg");
        QVERIFY(explorer->writePicture(ExplorePlot::Choose, svg).has_value());
        QFile picture(svg);
        QVERIFY(picture.open(QIODevice::ReadOnly));
        const QByteArray text = picture.readAll();
        QVERIFY(text.contains("Computed for gpt3-1.3b") && text.contains("activations"));
    }

    // A layer table in Layers from: its layers and its model count, and it is said what is the table's; what is wrong
    // in a file is said with its name.
    void layersOfATableAreTaken()
    {
        WindowFixture fixture;
        const QString table = fixture.dir.filePath("layers.json");
        QVERIFY(QFile::copy(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/fuzz/seeds/layers/table.json"), table));
        MainWindow window;
        ExploreView* view = shown(window, {1600, 1000});
        QVERIFY(view != nullptr);
        view->setPage(ExplorePage::Choose);
        ChooseView* page = view->ways();
        page->setField("cluster", QStringLiteral("4@a100"));
        page->setField("samples", QStringLiteral("16"));
        QVERIFY(settle(window));
        const auto said = [page] { return QString::fromStdString(page->answer()->setup()); };
        QVERIFY(page->answer() != nullptr && !said().contains("Layers:"));
        const double usual = page->answer()->shown[0].step.sum();
        page->setField("layers-from", table);
        QVERIFY(settle(window));
        QVERIFY2(page->answer() != nullptr, page->time()->plot().nothing.c_str());
        QCOMPARE(page->answer()->question.layout.model.layers, 4);
        QCOMPARE(page->answer()->question.layout.model.hidden, 64);
        QVERIFY2(said().contains("Layers: of " + table + ": 4 layers, embedding and loss"), qPrintable(said()));
        QVERIFY(page->answer()->shown[0].step.sum() < usual / 10);
        QVERIFY(page->answer()->simulated[0].has_value());
        QVERIFY2(page->command().contains("--layers " + table), qPrintable(page->command()));
        // a model of other sizes has other layers
        page->setField("sizes", QStringLiteral("gpt3-1.3b"));
        QVERIFY(settle(window));
        QVERIFY(page->answer() == nullptr);
        QVERIFY(page->time()->plot().nothing.find("it has 4 layers of kind block, the model 24") != std::string::npos);
        page->setField("sizes", {});
        QVERIFY(settle(window));
        QVERIFY(page->answer() != nullptr);
        for (const auto& [text, word] :
             {std::pair("{\"layers\": []}", "there are no layers"), std::pair("[1]", "it is not a JSON object")}) {
            QFile file(table);
            QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
            file.write(text);
            file.close();
            page->setField("layers-from", {});
            page->setField("layers-from", table);
            QVERIFY(settle(window));
            QVERIFY(page->answer() == nullptr);
            const std::string& nothing = page->time()->plot().nothing;
            QVERIFY2(nothing.find(word) != std::string::npos, nothing.c_str());
            QVERIFY2(nothing.find("layers.json") != std::string::npos, nothing.c_str());
        }
        page->setField("layers-from", {});
        QVERIFY(settle(window));
        QVERIFY(page->answer() != nullptr && page->answer()->question.layout.model.layers != 4);
    }

    // Cost lines in the topic Uneven ranks: the authors' example, a problem's file, what is wrong in one.
    void linesOfRanksAreTaken()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1400, 900});
        QVERIFY(view != nullptr);
        view->setPage(ExplorePage::State);
        StateView* state = view->state();
        state->setTopic(StateTopic::Mixed);
        auto* lines = state->findChild<QLineEdit*>(QStringLiteral("lines"));
        QVERIFY(lines != nullptr && lines->isVisibleTo(view));
        lines->setText(QStringLiteral("authors"));
        QVERIFY(settle(window));
        QCOMPARE(state->mixed()->items(), 12); // four ranks, three divisions
        QVERIFY2(state->mixed()->textOf(8).contains("13 of 64 samples"), qPrintable(state->mixed()->textOf(8)));
        QVERIFY(state->mixed()->textOf(9).contains("2 microbatches of 6"));
        lines->setText(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/planners/cephalo_three.json"));
        QVERIFY(settle(window));
        QCOMPARE(state->mixed()->items(), 9);
        lines->setText(QStringLiteral("nowhere.stagewright#1"));
        QVERIFY(settle(window));
        QCOMPARE(state->mixed()->items(), 0);
        QVERIFY(state->mixed()->plot().nothing.find("nowhere.stagewright") != std::string::npos);
        lines->clear();
        state->speedsField()->setText(QStringLiteral("32x3,32x1"));
        state->memoriesField()->setText(QStringLiteral("60"));
        state->batchField()->setValue(256);
        QVERIFY(settle(window));
        QCOMPARE(state->answer().rows.size(), std::size_t{3 * 64});
        QVERIFY(state->mixed()->items() < 24);
    }

    // The layers of the shown run: its model is asked for, and it is said what is measured.
    void layersOfTheShownRunAreTaken()
    {
        WindowFixture fixture;
        const Schedule schedule = *makeSchedule("zb-h1", {2, 4, 1});
        CostModel costs(2, CostSource::Fitted);
        for (const int stage : {0, 1}) costs.setPasses(stage, 2000, 2000, 2000);
        using Part = LayerCosts::Part;
        for (const Part part : {Part::Embedding, Part::Block, Part::Block, Part::Head}) {
            LayerCosts& layer = costs.layers.emplace_back();
            layer.part = part;
            for (const OpKind kind : {OpKind::Forward, OpKind::InputGrad, OpKind::WeightGrad})
                layer.duration[static_cast<std::size_t>(kind)] = 1000;
        }
        auto run = simulatedRun(schedule, costs);
        QVERIFY(run.has_value());
        run->configuration.emplace_back("model", "layers=2,hidden=64,heads=4,seq=32");
        run->configuration.emplace_back("microbatch_size", "1");
        const QString path = fixture.dir.filePath("layers.stagewright");
        const Run* const runs[] = {&*run};
        QVERIFY(addRuns(path.toStdString(), runs).has_value());
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {path}, {1600, 1000}));
        QVERIFY(window.workspace().shown().view() != nullptr);
        ExploreView* view = shown(window, {1600, 1000});
        QVERIFY(view != nullptr);
        view->setPage(ExplorePage::Choose);
        ChooseView* page = view->ways();
        page->setField("cluster", QStringLiteral("2@a100"));
        page->setField("samples", QStringLiteral("8"));
        QTest::mouseClick(page->measuredButton(), Qt::LeftButton);
        QVERIFY(settle(window));
        QVERIFY2(page->answer() != nullptr, page->time()->plot().nothing.c_str());
        QVERIFY(page->answer()->question.measured.find("2 layers, embedding and loss") != std::string::npos);
        QCOMPARE(page->answer()->question.layout.model.hidden, 64);
        QVERIFY(page->command().contains("--layers-from " + path + "#1"));
        QVERIFY(page->answer()->simulated[0].has_value());
    }

    // Jobs of Jigsaw are the shown file's runs with partial backward; the others are passed over.
    void jobsOfTheShownFileAreTaken()
    {
        WindowFixture fixture;
        const Schedule whole = *overReplicas(*makeSchedule("1f1b", {2, 4, 1}), 2);
        const std::vector<int> firstStages{0, 1};
        const Schedule cut = *withoutBackwardBelow(whole, firstStages);
        auto partial = simulatedRun(cut, CostModel::uniform(cut)),
             full = simulatedRun(whole, CostModel::uniform(whole));
        QVERIFY(partial.has_value() && full.has_value());
        partial->configuration.emplace_back("cut", "0,1");
        const QString path = fixture.dir.filePath("partial.stagewright");
        const Run* const runs[] = {&*full, &*partial};
        QVERIFY(addRuns(path.toStdString(), runs).has_value());
        MainWindow window;
        QVERIFY(WindowFixture::open(window, {path}, {1600, 1000}));
        ExploreView* view = shown(window, {1600, 1000});
        QVERIFY(view != nullptr);
        view->setPage(ExplorePage::Planners);
        PlannerView* page = view->planner();
        page->choose(QStringLiteral("jigsaw"));
        QVERIFY(settle(window));
        const std::string example = page->problem();
        QTest::mouseClick(page->runsButton(), Qt::LeftButton);
        QVERIFY(QTest::qWaitFor([&] { return page->problem() != example; }, 20000));
        QVERIFY(settle(window));
        QCOMPARE(page->problem(), jigsawProblem(std::vector{*recordedJobOf(*partial)}));
        QVERIFY(page->answer().has_value() && page->answer()->fits);
    }

    // Simulating ways can be cancelled: the closed form stays.
    void simulatingWaysCanBeCancelled()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1400, 900});
        QVERIFY(view != nullptr);
        view->setPage(ExplorePage::Choose);
        ChooseView* page = view->ways();
        page->setField("pin", {});
        page->setField("model", QStringLiteral("gpt3-175b"));
        page->setField("cluster", QStringLiteral("512@a100"));
        page->setField("samples", QStringLiteral("4096"));
        page->setField("tried", QStringLiteral("40"));
        page->setField("ways", QStringLiteral("40"));
        const auto mine = [&] { return page->answer() != nullptr && page->answer()->question.layout.samples == 4096; };
        QVERIFY(QTest::qWaitFor(mine, 60000));
        emit view->cancelAsked();
        QVERIFY(settle(window));
        QVERIFY(mine());
        QVERIFY(std::none_of(page->answer()->simulated.begin(), page->answer()->simulated.end(),
                             [](const auto& step) { return step.has_value(); }));
    }

    // `stagewright explore` prints what the window shows for the same question.
    void verbAndWindowAgree()
    {
        if (!WindowFixture::recordsWithBuiltProgram()) QSKIP("the command line is not built");
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1200, 800});
        QVERIFY(view != nullptr);
        view->form()->setQuestion(ofShape(4, 8));
        view->table()->rows()->setTicked({"1f1b", "zb-h1"});
        QVERIFY(settle(window));
        const QStringList shape{"--ranks", "4", "--microbatches", "8"}, ticked{"--schedules", "1f1b,zb-h1"};
        const auto printed = [](const QStringList& arguments) {
            QProcess verb;
            verb.start(qEnvironmentVariable("STAGEWRIGHT_PROGRAM"),
                       QStringList{"explore"} + arguments + QStringList{"--csv", "--log-level", "error"});
            return verb.waitForFinished(120000) && verb.exitCode() == 0 ? verb.readAllStandardOutput() : QByteArray();
        };
        const auto csv = [](const SurveyTable& table, const Units& units) {
            return QByteArray::fromStdString(csvOf(table.columns, table.rows, units));
        };
        QCOMPARE(printed(QStringList{"memory"} + shape), csv(view->points(), exploreUnits));
        QCOMPARE(printed(QStringList{"line"} + shape + ticked), csv(view->chart(), exploreUnits));
        view->setChart(ExploreChart::Heat);
        QVERIFY(settle(window));
        QCOMPARE(printed(QStringList{"heat"} + shape + ticked), csv(view->chart(), exploreUnits));
        view->setPage(ExplorePage::State);
        StateView* state = view->state();
        state->replicas()->setValue(2); // four
        const std::pair<StateTopic, QStringList> topics[] = {
            {StateTopic::Stages, QStringList{"state", "--replicas", "4"} + shape},
            {StateTopic::Mixed, {"uneven"}},
            {StateTopic::Cuts, {"partial", "--replicas", "4"}}};
        for (const auto& [topic, arguments] : topics) {
            state->setTopic(topic);
            QVERIFY(settle(window));
            QCOMPARE(printed(arguments), csv(state->answer(), {}));
        }
    }

    void bothThemesDraw()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1280, 720});
        QVERIFY(view != nullptr);
        for (const ThemeChoice theme : {ThemeChoice::Light, ThemeChoice::Dark}) {
            Appearance::choose(theme);
            const QImage image = view->pareto()->grab().toImage();
            QCOMPARE(image.pixelColor(2, image.height() / 2), window.workspace().theme().canvas);
            const QPoint at = placeOf(*view->pareto(), view->selected()).toPoint() + QPoint(2, 0);
            QCOMPARE(image.pixelColor(at * image.devicePixelRatio()), window.workspace().theme().accent);
        }
    }

    // The page Planners: each planner's example has a plan, a picture and an answer; sliders solve again; other text
    // and files of other things end in words; the picture is exported; the last problem comes back.
    void plannersDrawTheirPlans()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1500, 950});
        QVERIFY(view != nullptr);
        view->setPage(ExplorePage::Planners);
        PlannerView* page = view->planner();
        QVERIFY(settle(window));
        QVERIFY(page->form()->isVisibleTo(view) && !view->form()->isVisibleTo(view) &&
                !view->table()->isVisibleTo(view));
        for (const PlannerInfo& one : allExamples()) {
            const QString program = QString::fromUtf8(one.program.data(), static_cast<qsizetype>(one.program.size()));
            page->choose(program);
            QVERIFY(settle(window));
            QCOMPARE(page->program(), program);
            QVERIFY2(page->answer().has_value() && page->answer()->fits, qPrintable(program));
            QVERIFY2(page->picture()->items() > 0 && !page->said().isEmpty(), qPrintable(program));
            for (const ProblemNumber& number : numbersOf(page->problem()))
                QVERIFY2(page->slider(QString::fromStdString(number.key)) != nullptr, number.key.c_str());
        }
        // Alpa's plan is saved as the layout that solve --save-layout writes; no other has one.
        QVERIFY(!page->layoutButton()->isVisibleTo(view));
        page->choose(QStringLiteral("alpa_inter"));
        QVERIFY(settle(window));
        QVERIFY(page->layoutButton()->isVisibleTo(view) && page->layoutButton()->isEnabled());
        const QString file = fixture.dir.filePath(QStringLiteral("layout.json"));
        std::optional<Result<void>> saved;
        window.workspace().feature<ExplorerController>()->saveLayout(file, [&](Result<void> done) { saved = done; });
        QVERIFY(QTest::qWaitFor([&] { return saved.has_value(); }, 20000));
        QVERIFY(saved->has_value());
        const auto layout = parseLayout(*readSmallFile(file.toStdString()));
        const auto solved = layoutOfProblem(page->problem(), "layout.json", {});
        QVERIFY(layout && solved && *solved && *layout == (*solved)->layout && layout->stages.size() > 1);
        QVERIFY(window.workspace().banner()->text().contains(qtText((*solved)->choose)));
        page->setProblem(QStringLiteral(R"({"program": "alpa_inter", "input": {}})"));
        QVERIFY(settle(window));
        QVERIFY(page->layoutButton()->isVisibleTo(view) && !page->layoutButton()->isEnabled());

        // jobs of Jigsaw are taken from the shown run's file; what it lacks is said
        QVERIFY(!page->runsButton()->isVisibleTo(view));
        page->choose(QStringLiteral("jigsaw"));
        QVERIFY(settle(window));
        QVERIFY(page->runsButton()->isVisibleTo(view));
        page->runsButton()->click();
        QVERIFY(settle(window));
        const QString lacks = window.workspace().shown().ref().valid()
                                  ? QStringLiteral("no run of the file has partial backward")
                                  : QStringLiteral("no run is shown");
        QVERIFY(QTest::qWaitFor(
            [&] { return window.workspace().banner()->text().contains(lacks, Qt::CaseInsensitive); }, 20000));

        page->choose(QStringLiteral("comet"));
        QVERIFY(settle(window));
        const QString before = page->said();
        QSlider* slider = page->slider(QStringLiteral("between"));
        slider->setValue(slider->value() + 8); // twice the network
        QVERIFY(settle(window));
        QVERIFY(page->said() != before);
        QCOMPARE(page->said(), QString::fromStdString(solveProblem(page->problem())->picture.sentence));
        QVERIFY(page->text()->toPlainText().contains(QStringLiteral("62500000000")));
        QCOMPARE(page->slider(QStringLiteral("between")), slider); // it is still the one that is moved

        const QString svg = fixture.dir.filePath(QStringLiteral("comet.svg"));
        auto* explorer = window.workspace().feature<ExplorerController>();
        QVERIFY(explorer->writePicture(ExplorePlot::Planner, svg).has_value());
        QVERIFY(QFileInfo(svg).size() > 2000);

        page->text()->setPlainText(QStringLiteral("{\"program\": \"reshard\", \"input\": {}}"));
        QVERIFY(settle(window));
        QVERIFY(!page->answer().has_value() && page->said().contains(QStringLiteral("shape")));
        QCOMPARE(page->program(), QStringLiteral("reshard"));
        page->text()->setPlainText(QStringLiteral("nothing"));
        QVERIFY(settle(window));
        QVERIFY(!page->said().isEmpty() && page->picture()->items() == 0);
        page->choose(QStringLiteral("jigsaw"));
        QVERIFY(settle(window));
        explorer->setShown(false);
        const std::string left = page->problem();
        PlannerView again;
        again.restore();
        QCOMPARE(again.problem(), left);
    }
    // The chart How much is counted: places by level of the ticked schedules, and what changes them.
    void levelsAreAChart()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1500, 950});
        QVERIFY(view != nullptr);
        view->form()->setQuestion(view->question().with(ExploreParameter::Latency, 0.5));
        view->setChart(ExploreChart::Levels);
        QVERIFY(settle(window));
        SurveyChart* chart = view->survey(ExploreChart::Levels);
        QVERIFY(QTest::qWaitFor([&] { return chart->plot()->items() > 0; }, 120000));
        QCOMPARE(chart->plot()->plot().series.size(), view->ticked().size());
        QCOMPARE(view->chart().rows.size(), view->ticked().size());
        QVERIFY(!view->findChild<QLabel*>(QStringLiteral("levelsSaid"))->text().isEmpty());
    }
    // Charts that are surveys: what they show is what explore prints of the same question.
    void surveysAreCharts()
    {
        WindowFixture fixture;
        MainWindow window;
        ExploreView* view = shown(window, {1500, 950});
        QVERIFY(view != nullptr);
        view->form()->setQuestion(
            view->question().with(ExploreParameter::Ranks, 4).with(ExploreParameter::Microbatches, 8));
        view->setChart(ExploreChart::Keeping);
        QVERIFY(settle(window));
        SurveyChart* keeping = view->survey(ExploreChart::Keeping);
        QVERIFY(QTest::qWaitFor([&] { return keeping->plot()->items() > 0; }, 120000));
        QCOMPARE(view->chart().rows.size(), 4 * view->ticked().size());
        SurveyValues values{{"ranks", "4"}, {"microbatches", "8"}};
        for (const std::string& schedule : view->ticked())
            values["schedules"] += (values["schedules"].empty() ? "" : ",") + schedule;
        const SurveyInfo& info = keeping->survey();
        const auto answer = info.answer(*SurveyQuestion::read(info, values), {});
        QVERIFY(answer && answer->tables.front().rows == view->chart().rows);
        view->setChart(ExploreChart::Readiness);
        QVERIFY(settle(window));
        SurveyChart* readiness = view->survey(ExploreChart::Readiness);
        QVERIFY(QTest::qWaitFor([&] { return readiness->plot()->items() > 0; }, 120000));
        QVERIFY(view->chart().rows.size() >= 14);
        QVERIFY(!view->findChild<QLabel*>(QStringLiteral("readinessSaid"))->text().isEmpty());
    }
};

QTEST_MAIN(TestExplorer)
#include "tst_explorer.moc"
