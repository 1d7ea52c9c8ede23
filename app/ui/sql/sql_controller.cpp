#include "app/ui/sql/sql_controller.h"

#include <algorithm>
#include <utility>

#include <QApplication>
#include <QCheckBox>
#include <QDialog>
#include <QDialogButtonBox>
#include <QDockWidget>
#include <QElapsedTimer>
#include <QFileDialog>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSettings>
#include <QStatusBar>
#include <QTableView>
#include <QTimer>

#include "app/ui/sql/built_in_queries.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/settings_change.h"
#include "app/ui/workspace/workspace.h"
#include "traces/format/atomic_file.h"
#include "traces/report/tables.h"
#include "traces/store/run_file.h"
#include "widgets/background.h"
#include "widgets/console/sql_console.h"
#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/numbers.h"
#include "widgets/preferences/preferences.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/table_copy.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr int historyKept = 100;

QueryTables tablesOf(const RunFile& file)
{
    QueryTables tables;
    for (const char* name : {"spans", "memory", "edges", "runs", "steps", "metrics", "notes", "run_text", "track"}) {
        auto columns = file.query(std::string("SELECT * FROM ") + name + " LIMIT 0");
        if (!columns) continue;
        QStringList names;
        for (const std::string& column : columns->columns) names << QString::fromStdString(column);
        tables.append({QString::fromLatin1(name), names});
    }
    for (const AnalysisInfo* analysis : allAnalyses()) {
        QStringList names;
        for (const TableColumn& column : analysis->columns()) names << QString::fromStdString(column.key);
        tables.append({QString::fromStdString(reportFunction(*analysis)), names});
    }
    return tables;
}

} // namespace

std::vector<ActionEntry> SqlController::actionTable()
{
    return {
        item("sqlConsole", ActionGroup::AnalyseQuery, u"S&QL console"_s, ":",
             u"Queries the run file in SQL and shows rows on the timeline"_s, {.checkable = true}),
    };
}

SqlController::SqlController(Workspace& workspace)
    : Feature(workspace), m_console(new SqlConsole), m_dock(new QDockWidget(u"SQL console"_s, workspace.window())),
      m_asking(workspace.jobs()), m_placing(workspace.jobs()), m_reading(workspace.jobs())
{
    m_pool.setMaxThreadCount(1);
    m_dock->setObjectName(u"sqlDock"_s);
    m_dock->setWidget(m_console);
    m_dock->setFeatures(QDockWidget::DockWidgetClosable);
    m_dock->hide();
    m_console->editor()->setHistory(QSettings().value(u"sql/history"_s).toStringList());
    connect(m_dock, &QDockWidget::visibilityChanged, this, [this] {
        if (!m_dock->isHidden()) return;
        m_workspace.views().memory->setMinimumHeight(0);
        m_console->editor()->setMaximumHeight(SqlConsole::editorHeight);
    });
    connect(workspace.actions()["sqlConsole"], &QAction::triggered, this, &SqlController::open);
    connect(m_console, &SqlConsole::runAsked, this, &SqlController::ask);
    connect(m_console, &SqlConsole::cancelAsked, this, &SqlController::cancel);
    connect(m_console, &SqlConsole::rowChosen, this, &SqlController::chooseRow);
    connect(m_console, &SqlConsole::showOnTimelineAsked, this, &SqlController::showAllRows);
    connect(m_console, &SqlConsole::saveAsked, this, &SqlController::askToSave);
    connect(m_console, &SqlConsole::exportAsked, this, &SqlController::exportRows);
    connect(m_console->queriesMenu(), &QMenu::aboutToShow, this, &SqlController::fillMenu);
    connect(&workspace.shown(), &Shown::runShown, this, &SqlController::shownChanged);
    connect(&workspace, &Workspace::themeChanged, this, [this] { m_console->setTheme(m_workspace.theme()); });
    connect(&workspace, &Workspace::actionsRefreshed, this,
            [this] { m_workspace.actions()["sqlConsole"]->setEnabled(m_workspace.shown().view() != nullptr); });
}

FeatureParts SqlController::parts() { return {.docks = {{m_dock, Qt::BottomDockWidgetArea, false}}}; }

void SqlController::open()
{
    // ":" again is a letter there; the palette closes it
    if (!m_dock->isHidden() && m_console->isAncestorOf(QApplication::focusWidget())) {
        m_dock->hide();
        m_workspace.views().timeline->setFocus();
        return;
    }
    const bool opens = m_dock->isHidden();
    if (opens) m_heightBefore = m_workspace.window()->height();
    m_dock->show();
    if (opens) QTimer::singleShot(0, this, [this] { makeRoom(3); });
    readFile();
    m_console->editor()->setFocus();
    m_console->editor()->moveCursor(QTextCursor::End);
}

// It opens with ten rows of results; if the window is too low, the memory charts and the query shrink while it is open.
// The window stays as high as it was, also where the dock's first layout made it higher.
void SqlController::makeRoom(int tries)
{
    if (m_dock->isHidden()) return;
    QWidget* window = m_workspace.window();
    const int missing = m_console->missingHeight();
    const bool grew = window->height() > m_heightBefore && !window->isMaximized() && !window->isFullScreen();
    if (grew || (missing > 0 && tries < 3)) {
        m_workspace.views().memory->setMinimumHeight(1);
        m_console->editor()->setMaximumHeight(m_console->editor()->minimumHeight());
    }
    if (grew)
        window->resize(window->width(), m_heightBefore);
    else if (missing > 0)
        m_workspace.window()->resizeDocks({m_dock}, {m_dock->height() + missing}, Qt::Vertical);
    if (tries > 0) QTimer::singleShot(20, this, [this, tries] { makeRoom(tries - 1); }); // when that is laid out
}

// An in-memory run is queried through a temporary file.
void SqlController::withFile(const QString& path, const std::function<void(const Result<QString>& file)>& then)
{
    if (!m_workspace.library()->isSimulated(path)) {
        then(path);
        return;
    }
    const QString copy = m_scratch.filePath(u"simulated.stagewright"_s);
    m_workspace.library()->saveCopy(path, copy, [copy, then](Result<void> done) {
        if (done)
            then(copy);
        else
            then(tl::unexpected(done.error()));
    });
}

void SqlController::ask(const QString& sql)
{
    const auto shown = m_workspace.shown().view();
    if (!shown) {
        m_console->showFault(u"no run is open"_s, u"Open a run file first."_s);
        return;
    }
    rememberAsked(sql);
    m_asked = shown->ref;
    m_console->setRunning(true);
    qint64 run = shown->ref.id; // a copy of runs in memory renumbers them, in their order
    if (m_workspace.library()->isSimulated(shown->ref.file)) {
        run = 1;
        for (const RunRef& ref : m_workspace.runs()->refs())
            if (ref.file == shown->ref.file && ref.id < shown->ref.id) ++run;
    }
    const std::string text = withShown(sql.toStdString(), run, shown->step);
    withFile(shown->ref.file, m_asking.expect([this, text, run](const Result<QString>& file) {
        if (!file || m_asking.stopped()) return answered(file ? std::nullopt : std::optional<Error>(file.error()));
        struct Answer {
            Result<RunFile::Table> table;
            SpanNumbering numbering = SpanNumbering::AsTimeline;
            qint64 milliseconds = 0;
        };
        m_asking.start(
            [file = *file, text, run](const std::stop_token& stop) -> std::shared_ptr<Answer> {
                QElapsedTimer clock;
                clock.start();
                auto answer = std::make_shared<Answer>();
                auto opened = RunFile::open(file.toStdString(), OpenMode::Read);
                if (!opened) {
                    answer->table = tl::unexpected(opened.error());
                    return answer;
                }
                Progress progress;
                progress.stop = stop;
                answer->table = (*opened)->query(text, 100000, progress);
                answer->milliseconds = clock.elapsed();
                const auto segments = (*opened)->query("SELECT count(*) FROM segment WHERE run=" + std::to_string(run));
                if (segments && !segments->rows.empty() && segments->rows[0][0] != "1")
                    answer->numbering = SpanNumbering::StepByStep;
                return answer;
            },
            [this](const std::shared_ptr<Answer>& answer) {
                if (m_asking.stopped() || !answer->table)
                    return answered(answer->table ? std::nullopt : std::optional<Error>(answer->table.error()));
                m_console->setRunning(false);
                auto rows = std::make_shared<QueryRows>(QueryRows{
                    std::move(answer->table->columns), std::move(answer->table->rows), answer->table->truncated});
                this->answer(answer->milliseconds, rows, answer->numbering);
            },
            &m_pool);
    }));
}

void SqlController::cancel() { m_asking.stop(); }

// Without rows: cancelled, or a fault.
void SqlController::answered(const std::optional<Error>& fault)
{
    m_console->setRunning(false);
    if (m_asking.stopped() || !fault)
        m_console->setSaid(u"Cancelled."_s);
    else
        m_console->showFault(QString::fromStdString(fault->message), QString::fromStdString(fault->remedy));
}

void SqlController::answer(qint64 milliseconds, const std::shared_ptr<QueryRows>& rows, SpanNumbering numbering)
{
    m_numbering = numbering;
    m_places.reset();
    m_markLater = false;
    m_chooseLater = -1;
    m_console->showRows(std::move(*rows), milliseconds);
    place();
}

void SqlController::place()
{
    const auto shown = m_workspace.shown().view();
    const QueryRows& rows = m_console->model()->rows();
    const bool any = QueryPlaces(rows.columns).any() && !rows.rows.empty();
    m_console->setShowsOnTimeline(any && shown != nullptr,
                                  any ? QString()
                                      : u"To show rows, select a column span, start_ns or time_ns, or rank and name"_s);
    m_places.reset();
    m_placing.drop();
    if (!any || !shown || shown->ref.file != m_asked.file) return;
    const bool simulated = m_workspace.library()->isSimulated(shown->ref.file);
    m_placing.start(
        [rows, timeline = shown->run->timeline, numbering = m_numbering, id = shown->ref.id, simulated]() {
            const QueryPlaces places(rows.columns);
            const auto numbers = spanNumbers(*timeline, numbering);
            auto found = std::make_shared<std::vector<QueryPlace>>();
            found->reserve(rows.rows.size());
            for (const auto& row : rows.rows) {
                const std::int64_t run = places.runOf(row);
                if (run != 0 && run != id && !simulated) { // of another run of the file
                    QueryPlace other;
                    other.run = run;
                    other.step = places.stepOf(row);
                    found->push_back(other);
                } else {
                    found->push_back(places.of(row, *timeline, numbers));
                }
            }
            return std::shared_ptr<const std::vector<QueryPlace>>(std::move(found));
        },
        [this](const std::shared_ptr<const std::vector<QueryPlace>>& places) {
            m_places = places;
            if (m_chooseLater >= 0) chooseRow(std::exchange(m_chooseLater, -1));
            if (std::exchange(m_markLater, false)) showAllRows();
        },
        &m_pool);
}

void SqlController::chooseRow(int row)
{
    if (!m_places) {
        if (m_placing.running()) m_chooseLater = row;
        return;
    }
    const auto shown = m_workspace.shown().view();
    if (row < 0 || row >= static_cast<int>(m_places->size()) || !shown) return;
    const QueryPlace& place = (*m_places)[static_cast<std::size_t>(row)];
    if (place.run != 0 && place.run != shown->ref.id && !m_workspace.library()->isSimulated(shown->ref.file)) {
        m_chooseLater = row;
        m_workspace.shown().showRun({shown->ref.file, place.run}, place.step);
        return;
    }
    if (m_workspace.shown().mode() != Shown::Mode::Run) return;
    if (place.span != noSpan) {
        m_workspace.shown().chooseOp(place.span);
        return;
    }
    if (!place.time) {
        m_workspace.room().tell(u"This row has no place on the timeline"_s, 4000);
        return;
    }
    ViewState& state = *m_workspace.viewState();
    const Nanos at = shown->panel->toAxis(*place.time);
    if (!state.visible().contains(at)) {
        const Nanos half = state.visible().duration() / 2;
        state.setVisible({at - half, at + half});
    }
    state.setHoverTime(at);
}

void SqlController::showAllRows()
{
    if (!m_places) {
        m_markLater = m_placing.running();
        return;
    }
    const auto shown = m_workspace.shown().view();
    if (!shown) return;
    auto spans = std::make_shared<std::vector<SpanId>>();
    std::vector<Nanos> moments;
    std::size_t elsewhere = 0;
    for (const QueryPlace& place : *m_places) {
        if (place.span != noSpan)
            spans->push_back(place.span);
        else if (place.time)
            moments.push_back(shown->panel->toAxis(*place.time));
        else
            ++elsewhere;
    }
    std::sort(spans->begin(), spans->end());
    spans->erase(std::unique(spans->begin(), spans->end()), spans->end());
    std::sort(moments.begin(), moments.end());
    const auto marked = spans->size() + moments.size();
    if (m_workspace.shown().showsToolPicture()) m_workspace.shown().setTool(Shown::Tool::None);
    m_workspace.feature<OpFinding>()->mark(spans, std::move(moments));
    m_console->setSaid(
        elsewhere == 0
            ? countText(static_cast<qint64>(marked),
                        u"1 place is marked on the timeline. Press Esc in the timeline to clear the mark."_s,
                        u"%L1 places are marked on the timeline. Press Esc in the timeline to clear the marks."_s)
            : countText(static_cast<qint64>(marked), u"1 place is marked on the timeline"_s,
                        u"%L1 places are marked on the timeline"_s) +
                  countText(static_cast<qint64>(elsewhere), u"; 1 row has no place or belongs to another run."_s,
                            u"; %L1 rows have no place or belong to another run."_s));
}

void SqlController::shownChanged()
{
    const auto shown = m_workspace.shown().view();
    if (m_dock->isHidden() || !shown) return;
    readFile();
    if (m_console->model()->rowCount() > 0) place();
}

void SqlController::readFile()
{
    const auto shown = m_workspace.shown().view();
    if (!shown || shown->ref.file == m_file) return;
    m_file = shown->ref.file;
    m_fileQueries.clear();
    withFile(m_file, m_reading.expect([this](const Result<QString>& file) {
        if (!file)
            return m_console->showFault(QString::fromStdString(file.error().message),
                                        QString::fromStdString(file.error().remedy));
        struct Known {
            QueryTables tables;
            std::vector<SavedQuery> queries;
        };
        m_reading.start(
            [file = *file]() {
                Known known;
                auto opened = RunFile::open(file.toStdString(), OpenMode::Read);
                if (!opened) return known;
                known.tables = tablesOf(**opened);
                if (auto queries = (*opened)->savedQueries()) known.queries = std::move(*queries);
                return known;
            },
            [this](const Known& known) {
                m_console->editor()->setTables(known.tables);
                m_fileQueries = known.queries;
            },
            &m_pool);
    }));
}

static std::vector<SavedQuery> readOwn(QSettings& settings)
{
    std::vector<SavedQuery> own;
    const int count = settings.beginReadArray(u"sql/queries"_s);
    for (int i = 0; i < count; ++i) {
        settings.setArrayIndex(i);
        own.push_back({settings.value(u"name"_s).toString().toStdString(),
                       settings.value(u"sql"_s).toString().toStdString(),
                       settings.value(u"about"_s).toString().toStdString()});
    }
    settings.endArray();
    return own;
}

static void writeOwn(QSettings& settings, const std::vector<SavedQuery>& own)
{
    settings.remove(u"sql/queries"_s);
    settings.beginWriteArray(u"sql/queries"_s, static_cast<int>(own.size()));
    for (std::size_t i = 0; i < own.size(); ++i) {
        settings.setArrayIndex(static_cast<int>(i));
        settings.setValue(u"name"_s, QString::fromStdString(own[i].name));
        settings.setValue(u"sql"_s, QString::fromStdString(own[i].sql));
        settings.setValue(u"about"_s, QString::fromStdString(own[i].about));
    }
    settings.endArray();
}

std::vector<SavedQuery> SqlController::ownQueries() const
{
    QSettings settings;
    return readOwn(settings);
}

// Those of the user, whatever other windows saved meanwhile, without the one of this name; then with the new one, if
// there is one.
static void replaceOwn(const std::string& name, const SavedQuery* query)
{
    changeSettings([&](QSettings& settings) {
        std::vector<SavedQuery> own = readOwn(settings);
        std::erase_if(own, [&](const SavedQuery& one) { return one.name == name; });
        if (query != nullptr) own.push_back(*query);
        std::sort(own.begin(), own.end(), [](const SavedQuery& a, const SavedQuery& b) { return a.name < b.name; });
        writeOwn(settings, own);
    });
}

void SqlController::saveQuery(const SavedQuery& query, bool inFile)
{
    if (!inFile) {
        replaceOwn(query.name, &query);
        return;
    }
    std::erase_if(m_fileQueries, [&](const SavedQuery& one) { return one.name == query.name; });
    m_fileQueries.push_back(query);
    inBackground(
        this,
        [file = m_file, query]() -> Result<void> {
            STAGEWRIGHT_TRY(auto opened, RunFile::open(file.toStdString(), OpenMode::Write));
            return (opened)->saveQuery(query);
        },
        [this, file = m_file](Result<void> done) {
            if (!done) m_workspace.banner()->showError(u"the query could not be saved in the file"_s, done.error());
            emit m_workspace.fileWritten(file);
        },
        &m_pool);
}

void SqlController::removeQuery(const QString& name, bool inFile)
{
    if (!inFile) {
        replaceOwn(name.toStdString(), nullptr);
        return;
    }
    std::erase_if(m_fileQueries, [&](const SavedQuery& one) { return one.name == name.toStdString(); });
    inBackground(
        this,
        [file = m_file, name]() -> Result<void> {
            STAGEWRIGHT_TRY(auto opened, RunFile::open(file.toStdString(), OpenMode::Write));
            return (opened)->removeQuery(name.toStdString());
        },
        [this, file = m_file](Result<void> done) {
            if (!done) m_workspace.banner()->showError(u"the query could not be removed from the file"_s, done.error());
            emit m_workspace.fileWritten(file);
        },
        &m_pool);
}

void SqlController::fillMenu()
{
    QMenu& menu = *m_console->queriesMenu();
    menu.clear();
    const auto add = [&](QMenu& into, const SavedQuery& query) {
        QAction* action = into.addAction(shownName(query.name).replace(u'&', u"&&"_s), this, [this, query] {
            m_console->setQuery(QString::fromStdString(query.sql));
            ask(QString::fromStdString(query.sql));
        });
        action->setToolTip(shownTip(QString::fromStdString(query.about.empty() ? query.sql : query.about)));
    };
    for (const SavedQuery& query : builtInQueries()) add(menu, query);
    const auto own = ownQueries();
    const auto title = [&menu](const QString& text) { // a section has none in our style
        menu.addSeparator();
        menu.addAction(text)->setEnabled(false);
    };
    if (!own.empty()) title(u"Your own"_s);
    for (const SavedQuery& query : own) add(menu, query);
    if (!m_fileQueries.empty()) title(u"In this file"_s);
    for (const SavedQuery& query : m_fileQueries) add(menu, query);
    if (own.empty() && m_fileQueries.empty()) return;
    menu.addSeparator();
    QMenu* remove = menu.addMenu(u"Remove"_s);
    for (const SavedQuery& query : own)
        remove->addAction(QString::fromStdString(query.name), this,
                          [this, name = QString::fromStdString(query.name)] { removeQuery(name, false); });
    for (const SavedQuery& query : m_fileQueries)
        remove->addAction(u"%1 (in this file)"_s.arg(QString::fromStdString(query.name)), this,
                          [this, name = QString::fromStdString(query.name)] { removeQuery(name, true); });
}

void SqlController::askToSave(const QString& sql)
{
    if (sql.trimmed().isEmpty()) {
        m_console->setSaid(u"No query to save."_s);
        return;
    }
    auto* dialog = new QDialog(m_workspace.window());
    dialog->setObjectName(u"saveQuery"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(u"Save the query"_s);
    auto* layout = new QGridLayout(dialog);
    layout->setContentsMargins(20, 18, 20, 16);
    layout->setSpacing(9);
    auto* name = new QLineEdit(dialog);
    name->setAccessibleName(u"Name"_s);
    name->setMinimumWidth(320);
    auto* about = new QLineEdit(dialog);
    about->setAccessibleName(u"Description"_s);
    auto* inFile = new QCheckBox(u"Save it in the run file, for everyone who opens it"_s, dialog);
    const bool stored = !m_workspace.library()->isSimulated(m_file);
    inFile->setEnabled(stored);
    inFile->setToolTip(stored ? u"Otherwise in your settings, for every file"_s
                              : u"Runs in memory have no file yet; save a copy first"_s);
    layout->addWidget(makeLabel(u"Name"_s, "secondary", dialog), 0, 0);
    layout->addWidget(name, 0, 1);
    layout->addWidget(makeLabel(u"Description"_s, "secondary", dialog), 1, 0);
    layout->addWidget(about, 1, 1);
    layout->addWidget(inFile, 2, 1);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Cancel, dialog);
    buttons->button(QDialogButtonBox::Save)->setObjectName(u"primary"_s);
    buttons->button(QDialogButtonBox::Save)->setText(u"Save"_s);
    buttons->button(QDialogButtonBox::Cancel)->setText(u"Cancel"_s);
    buttons->button(QDialogButtonBox::Save)->setEnabled(false);
    layout->addWidget(buttons, 3, 0, 1, 2);
    connect(name, &QLineEdit::textChanged, dialog, [buttons](const QString& text) {
        buttons->button(QDialogButtonBox::Save)->setEnabled(!text.trimmed().isEmpty());
    });
    connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, dialog, [this, dialog, name, about, inFile, sql] {
        saveQuery(
            {name->text().trimmed().toStdString(), sql.trimmed().toStdString(), about->text().trimmed().toStdString()},
            inFile->isChecked());
        m_console->setSaid(u"Saved as “%1”."_s.arg(name->text().trimmed()));
        dialog->accept();
    });
    dialog->open();
}

void SqlController::exportRows()
{
    QString path =
        QFileDialog::getSaveFileName(m_workspace.window(), u"Export the rows"_s,
                                     PreferenceStore::instance().value().folder, u"CSV (*.csv);;Markdown (*.md)"_s);
    if (path.isEmpty()) return;
    if (QFileInfo(path).suffix().isEmpty()) path += u".csv"_s;
    const TableFormat format = path.endsWith(".md"_L1, Qt::CaseInsensitive) ? TableFormat::Markdown : TableFormat::Csv;
    const std::string text = toText(tableOf(*m_console->table()->model()), format).toStdString();
    if (auto done = writeFileAtomically(path.toStdString(), text); !done)
        m_workspace.banner()->showError(u"could not export"_s, done.error());
    else
        m_console->setSaid(u"Wrote %1"_s.arg(path));
}

void SqlController::rememberAsked(const QString& sql)
{
    QStringList history;
    changeSettings([&](QSettings& settings) {
        history = settings.value(u"sql/history"_s).toStringList();
        history.removeAll(sql);
        history.prepend(sql);
        history = history.mid(0, historyKept);
        settings.setValue(u"sql/history"_s, history);
    });
    m_console->editor()->setHistory(history);
}

namespace {

void showConsole(const ShowRequest& request)
{
    request.workspace.actions()["sqlConsole"]->trigger();
    auto* sql = request.workspace.feature<SqlController>();
    const QString query = QString::fromStdString(builtInQueries().front().sql);
    sql->console()->setQuery(query);
    sql->ask(query);
    request.settle();
    sql->showAllRows();
}

} // namespace

std::vector<ShowEntry> SqlController::showTable()
{
    return {
        {"sql", 110, &showConsole},
    };
}

FeatureEntry sqlFeature() { return featureEntry<SqlController>(); }

} // namespace stagewright
