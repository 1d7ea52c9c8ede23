#include "app/ui/shell/main_window.h"

#include <map>

#include <QActionGroup>
#include <QApplication>
#include <QComboBox>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QPointer>
#include <QProgressBar>
#include <QProxyStyle>
#include <QScreen>
#include <QSettings>
#include <QSplitter>
#include <QStackedWidget>
#include <QStatusBar>
#include <QStyleFactory>
#include <QToolBar>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/edit/edit_controller.h"
#include "app/ui/edit/plan_controller.h"
#include "app/ui/exchange/exchange_controller.h"
#include "app/ui/exchange/export_controller.h"
#include "app/ui/exchange/import_controller.h"
#include "app/ui/explain/device_controller.h"
#include "app/ui/explain/memory_controller.h"
#include "app/ui/explain/range_controller.h"
#include "app/ui/explain/rows_controller.h"
#include "app/ui/explain/steps_controller.h"
#include "app/ui/explore/explorer_controller.h"
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/notes/bookmarks_controller.h"
#include "app/ui/notes/notes_controller.h"
#include "app/ui/playback/playback_controller.h"
#include "app/ui/search/search_controller.h"
#include "app/ui/shell/banner.h"
#include "app/ui/shell/key_router.h"
#include "app/ui/shell/layout_controller.h"
#include "app/ui/shell/palette_controller.h"
#include "app/ui/shell/preferences_controller.h"
#include "app/ui/shell/screen_fit.h"
#include "app/ui/shell/session_controller.h"
#include "app/ui/shell/welcome_page.h"
#include "app/ui/sql/sql_controller.h"
#include "app/ui/tables/tables_controller.h"
#include "widgets/record/record_strip.h"
#include "widgets/search/find_field.h"
#include "widgets/style.h"
#include "widgets/tools/lowered_panel.h"
#include "widgets/tools/residual_panel.h"
#include "widgets/tools/what_if_panel.h"

namespace stagewright {
namespace {

constexpr int sideWidth = 316;
constexpr int runsWidth = 224;
constexpr int ownPages = 2; // welcome and views; pages of addPage take the given width

// Fusion without underlined mnemonics; Alt and the letter still work.
class QuietStyle : public QProxyStyle {
public:
    QuietStyle() : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion"))) {}
    int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget, QStyleHintReturn* data) const override
    {
        if (hint == SH_Widget_Animation_Duration && PreferenceStore::instance().value().reducedMotion) return 0;
        return hint == SH_UnderlineShortcut ? 0 : QProxyStyle::styleHint(hint, option, widget, data);
    }
};

void installStyle() // once per process: windows share it
{
    static QPointer<QStyle> installed;
    if (installed) return;
    installed = new QuietStyle;
    QApplication::setStyle(installed);
}

bool looksDark(const QPalette& palette) { return palette.color(QPalette::Window).lightnessF() < 0.5F; }

} // namespace

MainWindow::MainWindow(QWidget* parent) : QMainWindow(parent)
{
    static const bool systemDark = looksDark(QApplication::palette()); // before the first theme
    m_systemDark = systemDark;
    PreferenceStore::instance().reload();
    installStyle();
    loadFonts();
    QApplication::setFont(fontOf(FontRole::Body));
    setAcceptDrops(true);
    setObjectName(QStringLiteral("stagewright"));

    m_actions = new Actions(this);
    m_library = new RunLibrary(this);
    m_state = new ViewState(this);
    m_editor = new ScheduleEditor(this);
    m_process = new RecordProcess(this);
    buildViews();
    buildToolBar();
    buildMenus();
    buildStatusBar();
    connectAll();
    new KeyRouter(*this); // owned by the window
    m_edit = new EditController(*this, m_editor, m_overlay, m_editPanel);
    m_playback = new PlaybackController(*this);
    m_lessons = new LessonController(*this);
    m_rowsController = new RowsController(*this);
    m_memoryController = new MemoryController(*this);
    m_range = new RangeController(*this);
    m_preferences = new PreferencesController(*this);
    m_notes = new NotesController(*this);
    m_search = new SearchController(*this);
    tabifyDockWidget(m_notes->dock(), m_search->dock());
    m_device = new DeviceController(*this);
    tabifyDockWidget(m_search->dock(), m_device->dock());
    m_tables = new TablesController(*this);
    tabifyDockWidget(m_device->dock(), m_tables->dock());
    m_sql = new SqlController(*this);
    m_palette = new PaletteController(*this);
    m_bookmarks = new BookmarksController(*this);
    m_session = new SessionController(*this);
    m_stepsController = new StepsController(*this);
    m_explorer = new ExplorerController(*this);
    m_compare = new CompareController(*this);
    m_plans = new PlanController(*this);
    m_import = new ImportController(*this);
    m_exchange = new ExchangeController(*this);
    restoreLayout();
    applyPreferences();
    m_export = new ExportController(*this);
    m_layouts = new LayoutController(*this);
    restoreState(QSettings().value(QStringLiteral("window/docks")).toByteArray());
    setMode(Mode::Empty);
}

// Controllers are destroyed before what they refer to, the last created first; nothing destroyed after them calls back.
MainWindow::~MainWindow()
{
    m_edit->closing();
    m_poll.stop();
    for (QObject* child : findChildren<QObject*>()) child->disconnect(this);
    for (QObject* controller : std::initializer_list<QObject*>{m_layouts, m_export, m_exchange, m_import, m_plans, m_compare, m_explorer, m_stepsController, m_session, m_bookmarks, m_palette, m_sql, m_tables, m_device, m_search, m_notes,
                                                               m_preferences, m_range, m_memoryController, m_rowsController, m_lessons, m_playback, m_edit})
        delete controller;
}

void MainWindow::buildViews()
{
    auto* central = new QWidget(this);
    auto* outer = new QVBoxLayout(central);
    outer->setContentsMargins(0, 0, 0, 0);
    outer->setSpacing(0);
    m_banner = new Banner(central);
    m_strip = new RecordStrip(m_process, central);
    outer->addWidget(m_strip);

    m_columns = new QSplitter(Qt::Horizontal, central);
    m_columns->setHandleWidth(1);
    m_columns->setChildrenCollapsible(false);
    outer->addWidget(m_columns, 1);

    m_runsPanel = new RunsPanel(m_library->model(), m_columns);
    m_runsPanel->setMinimumWidth(170);
    m_columns->addWidget(m_runsPanel);

    m_pages = new QStackedWidget(m_columns);
    m_columns->addWidget(m_pages);
    m_welcome = new WelcomePage(m_pages);
    m_pages->addWidget(m_welcome);
    auto* work = new QWidget(m_pages);
    work->setObjectName(QStringLiteral("canvas"));
    work->setAttribute(Qt::WA_StyledBackground);
    m_work = new QVBoxLayout(work);
    m_work->setContentsMargins(0, 0, 0, 0);
    m_work->setSpacing(0);
    m_rows = new QSplitter(Qt::Vertical, work);
    m_rows->setHandleWidth(1);
    m_rows->setChildrenCollapsible(false);
    m_timeline = new TimelineView(m_state, m_rows);
    m_timeline->setAccessibleName(tr("Timeline"));
    m_memory = new MemoryView(m_state, m_rows);
    m_memory->setAccessibleName(tr("Activation memory"));
    m_rows->addWidget(m_timeline);
    m_rows->addWidget(m_memory);
    m_rows->setStretchFactor(0, 0);
    m_rows->setStretchFactor(1, 1);
    m_legend = new Legend(work);
    m_work->addWidget(m_rows, 1);
    m_work->addWidget(m_legend);
    m_pages->addWidget(work);
    // A hidden page must not make the window taller or wider.
    m_welcome->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Ignored);
    connect(m_pages, &QStackedWidget::currentChanged, this, [this](int current) {
        for (int i = 0; i < m_pages->count(); ++i) m_pages->widget(i)->setSizePolicy(i == current && i < ownPages ? QSizePolicy::Preferred : QSizePolicy::Ignored, i == current ? QSizePolicy::Preferred : QSizePolicy::Ignored);
    });
    m_overlay = new EditOverlay(m_timeline, m_state);

    auto* column = new QWidget(m_columns);
    column->setObjectName(QStringLiteral("panel"));
    column->setAttribute(Qt::WA_StyledBackground);
    column->setMinimumWidth(270);
    m_panelColumn = new QVBoxLayout(column);
    m_panelColumn->setContentsMargins(0, 0, 0, 0);
    m_panelColumn->setSpacing(0);
    m_panels = new QStackedWidget(column);
    m_panelColumn->addWidget(m_panels, 1);
    m_side = new SidePanel(m_panels);
    m_comparePanel = new ComparePanel(m_panels);
    m_editPanel = new EditPanel(m_editor, m_panels);
    m_side->setAccessibleName(tr("Figures of the run"));
    m_comparePanel->setAccessibleName(tr("What differs"));
    m_editPanel->setAccessibleName(tr("Edited schedule"));
    m_panels->addWidget(m_side);
    m_panels->addWidget(m_comparePanel);
    m_panels->addWidget(m_editPanel);
    buildTools();
    m_columns->addWidget(column);
    m_columns->setStretchFactor(0, 0);
    m_columns->setStretchFactor(1, 1);
    m_columns->setStretchFactor(2, 0);
    m_columns->setSizes({runsWidth, 1000, sideWidth});
    setCentralWidget(central);
    m_banner->attach(m_pages);
    m_banner->setContext([this] { return whileShown(); });
}

void MainWindow::buildToolBar()
{
    auto* bar = new QToolBar(tr("Tools"), this);
    bar->setObjectName(QStringLiteral("tools"));
    bar->setMovable(false);
    bar->setFixedHeight(44);
    bar->setContextMenuPolicy(Qt::PreventContextMenu);
    bar->layout()->setContentsMargins(0, 0, 0, 0);
    bar->setToolButtonStyle(Qt::ToolButtonTextOnly);
    auto add = [&](ActionId id, const char* name = nullptr) {
        QAction* action = (*m_actions)[id];
        action->setIconText(Actions::buttonText(id));
        bar->addAction(action);
        QWidget* button = bar->widgetForAction(action);
        if (name != nullptr) button->setObjectName(QString::fromLatin1(name));
        button->setFocusPolicy(Qt::TabFocus);
        return button;
    };
    auto gap = [&](int width) {
        auto* space = new QWidget(bar);
        space->setFixedWidth(width);
        bar->addWidget(space);
    };
    add(ActionId::Open);
    add(ActionId::Record, "primary");
    gap(4);
    add(ActionId::EditMode);
    gap(4);
    add(ActionId::CriticalPath);
    add(ActionId::CommTracks);
    add(ActionId::Memory);
    add(ActionId::Compare);
    gap(4);
    add(ActionId::Fit);
    add(ActionId::ExportPicture);
    gap(4);
    m_steps = new QComboBox(bar);
    m_steps->setAccessibleName(tr("Step"));
    m_steps->setToolTip(tr("The step shown. Figures of a run are those of the measured step with the median time."));
    m_steps->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    bar->addWidget(m_steps);
    addToolBar(Qt::TopToolBarArea, bar);
    // The field has its own bar: without room for all buttons, the last ones fold behind », and the field stays.
    auto* end = new QToolBar(tr("Find"), this);
    end->setObjectName(QStringLiteral("findBar"));
    end->setMovable(false);
    end->setFixedHeight(44);
    end->setContextMenuPolicy(Qt::PreventContextMenu);
    end->layout()->setContentsMargins(0, 0, 0, 0);
    auto* place = new QWidget(end); // a bar is at least as wide as the first thing in it
    auto* line = new QHBoxLayout(place);
    line->setContentsMargins(0, 0, 0, 0);
    line->addStretch(0);
    m_find = new FindField(place);
    m_find->setObjectName(QStringLiteral("find"));
    m_find->setAcceptDrops(false); // the window handles file drops
    m_find->setPlaceholderText(tr("Find op, e.g. rank:2 mb:5 B"));
    m_find->setAccessibleName(tr("Find op"));
    m_find->setToolTip(tr("rank:2  stage:3  mb:5  a kind (F B I W OPT)  or an op as the schedule writes it (2B5).\n"
                          "B also finds I and W where the backward is split.\n"
                          "Enter: next, Shift+Enter: previous, Esc: back to the timeline."));
    m_find->setClearButtonEnabled(true);
    m_find->setMinimumWidth(150);
    m_find->setMaximumWidth(272);
    m_find->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_find->installEventFilter(this);
    line->addWidget(m_find, 1);
    end->addWidget(place);
    addToolBar(Qt::TopToolBarArea, end);
}

void MainWindow::buildMenus()
{
    const std::pair<MenuId, QString> titles[] = {{MenuId::File, tr("&File")}, {MenuId::Edit, tr("&Edit")}, {MenuId::View, tr("&View")}, {MenuId::Order, tr("&Order")}, {MenuId::Schedule, tr("&Schedule")}, {MenuId::Analyse, tr("&Analyse")}, {MenuId::Learn, tr("&Learn")}, {MenuId::Help, tr("&Help")}};
    std::map<MenuId, QMenu*>& menus = m_menus;
    for (const auto& [id, title] : titles)
        menus[id] = menuBar()->addMenu(title);
    menus[MenuId::Exchange] = new QMenu(tr("Export for ot&her tools"), this);
    menus[MenuId::Theme] = new QMenu(tr("&Theme"), this);
    menus[MenuId::Rows] = new QMenu(tr("Ro&ws"), this);
    menus[MenuId::Layouts] = new QMenu(tr("Lay&outs"), this);
    menus[MenuId::Bookmarks] = new QMenu(tr("&Bookmarks"), this);
    menus[MenuId::Times] = new QMenu(tr("T&imes"), this);
    menus[MenuId::MemoryCharts] = new QMenu(tr("Memory c&harts"), this);
    for (const ActionEntry& entry : Actions::table()) {
        QMenu* menu = menus.at(entry.menu);
        if (entry.line) menu->addSeparator();
        if (entry.id == ActionId::OpenRecent)
            m_recentMenu = menu->addMenu(tr(entry.text));
        else
            menu->addAction((*m_actions)[entry.id]);
        if (entry.id == ActionId::ExportReport) menu->addMenu(menus[MenuId::Exchange]);
    }
    menus[MenuId::View]->addSeparator();
    for (const MenuId id : {MenuId::Rows, MenuId::Times, MenuId::MemoryCharts, MenuId::Bookmarks, MenuId::Layouts, MenuId::Theme})
        menus[MenuId::View]->addMenu(menus[id]);
    using I = ActionId;
    for (const auto& exclusive : {std::vector{I::ThemeSystem, I::ThemeLight, I::ThemeDark, I::ThemeHighContrast}, std::vector{I::KeysPerfetto, I::KeysNsight, I::KeysTracy}}) {
        auto* group = new QActionGroup(this);
        for (const I id : exclusive)
            group->addAction((*m_actions)[id]);
    }
    m_titleLabel = makeLabel({}, "title", menuBar());
    m_titleLabel->setAttribute(Qt::WA_TransparentForMouseEvents);
    m_titleLabel->setAlignment(Qt::AlignCenter);
}

void MainWindow::buildStatusBar()
{
    statusBar()->setSizeGripEnabled(false);
    m_statusLeft = new QLabel(this);
    m_reading = new QProgressBar(this);
    m_reading->setRange(0, 0);
    m_reading->setTextVisible(false);
    m_reading->setFixedWidth(90);
    m_reading->hide();
    m_statusClock = new QLabel(this);
    m_statusRight = new QLabel(this);
    statusBar()->addWidget(m_statusLeft);
    statusBar()->addWidget(m_reading);
    statusBar()->addPermanentWidget(m_statusClock);
    statusBar()->addPermanentWidget(m_statusRight);
}

void MainWindow::restoreLayout()
{
    QSettings settings;
    // No larger than the screen; a picture drawn without a screen has the requested size.
    const bool real = QGuiApplication::platformName() != QLatin1String("offscreen");
    const QSize room = real ? screen()->availableSize() : QSize(1600, 1000);
    resize(real ? firstSize(QSize(1600, 1000), room) : room); // how large its frame is shows later (keepOnScreen)
    const bool tight = real && room.width() < 900;            // large text on a small screen
    if (tight) m_panels->setMinimumWidth(200);
    restoreGeometry(settings.value(QStringLiteral("window/geometry")).toByteArray());
    m_startSize = size();
    const auto columns = settings.value(QStringLiteral("window/columns")).toByteArray();
    if (!columns.isEmpty()) m_columns->restoreState(columns);
    const bool list = settings.value(QStringLiteral("window/runsList"), true).toBool() && !tight;
    (*m_actions)[ActionId::RunsList]->setChecked(list);
    m_runsPanel->setVisible(list);
    restoreBudget();
    refreshRecent();
}

// With its frame, which a window manager adds later.
void MainWindow::keepOnScreen()
{
    if (isMaximized() || isFullScreen() || size() != m_startSize) return; // given another size meanwhile
    const QRect frame = frameGeometry();
    const QRect fits = keptOnScreen(frame, size(), screen()->availableGeometry(), minimumSizeHint());
    if (fits.size() != size()) resize(m_startSize = fits.size());
    if (fits.topLeft() != frame.topLeft()) move(fits.topLeft());
}

void MainWindow::showEvent(QShowEvent* event)
{
    QMainWindow::showEvent(event);
    if (event->spontaneous() || m_placed || QGuiApplication::platformName() == QLatin1String("offscreen")) return;
    m_placed = true;
    for (const int later : {60, 400}) QTimer::singleShot(later, this, &MainWindow::keepOnScreen);
}

void MainWindow::closeEvent(QCloseEvent* event)
{
    if (m_process->running() || m_taking) {
        event->ignore();
        if (m_process->running() && !m_closeAfter)
            askToStop();
        else
            m_closeAfter = true; // as soon as its runs are in their file
        return;
    }
    QSettings settings;
    settings.setValue(QStringLiteral("window/geometry"), saveGeometry());
    settings.setValue(QStringLiteral("window/columns"), m_columns->saveState());
    settings.setValue(QStringLiteral("window/docks"), saveState());
    emit windowClosing();
    settings.setValue(QStringLiteral("window/runsList"), (*m_actions)[ActionId::RunsList]->isChecked());
    QMainWindow::closeEvent(event);
}

void MainWindow::setThemeChoice(ThemeChoice choice)
{
    Preferences preferences = PreferenceStore::instance().value();
    preferences.theme = choice;
    PreferenceStore::instance().set(preferences);
}

void MainWindow::applyPreferences()
{
    const Preferences& preferences = PreferenceStore::instance().value();
    const bool rewritten = timeUnit() != preferences.timeUnit || m_timeline->property("timeUnit").toInt() != static_cast<int>(preferences.timeUnit);
    setTimeUnit(preferences.timeUnit);
    m_timeline->setProperty("timeUnit", static_cast<int>(preferences.timeUnit));
    m_timeline->setKeyMap(preferences.keys);
    m_memory->setKeyMap(preferences.keys);
    const ActionId keys[] = {ActionId::KeysPerfetto, ActionId::KeysNsight, ActionId::KeysTracy};
    (*m_actions)[keys[static_cast<int>(preferences.keys)]]->setChecked(true);
    m_reading->setMaximum(preferences.reducedMotion ? 1 : 0); // a busy bar moves back and forth
    m_reading->setTextVisible(false);
    applyTheme();
    refreshRecent();
    if (rewritten) timesChanged();
    refreshStatus();
}

void MainWindow::applyTheme()
{
    const ThemeChoice choice = PreferenceStore::instance().value().theme;
    const bool dark = choice == ThemeChoice::Dark || (choice == ThemeChoice::System && m_systemDark);
    m_theme = choice == ThemeChoice::HighContrast ? &Theme::highContrastTheme() : &Theme::named(dark);
    const bool hatched = PreferenceStore::instance().value().hatches();
    if (hatched) m_theme = &m_theme->hatchedTwin();
    (*m_actions)[ActionId::HatchKinds]->setChecked(hatched);
    static const Theme* applied = nullptr; // of the application, which all windows share
    if (applied != m_theme || qApp->styleSheet().isEmpty()) {
        applied = m_theme;
        QApplication::setPalette(m_theme->palette());
        qApp->setStyleSheet(stagewright::styleSheet(*m_theme));
    }
    m_timeline->setTheme(*m_theme);
    m_memory->setTheme(*m_theme);
    m_legend->setTheme(*m_theme);
    m_edit->setTheme(*m_theme);
    m_runsPanel->setTheme(*m_theme);
    m_side->setTheme(*m_theme);
    m_comparePanel->setTheme(*m_theme);
    m_editPanel->setTheme(*m_theme);
    m_lowered->setTheme(*m_theme);
    m_whatIf->setTheme(*m_theme);
    m_residuals->setTheme(*m_theme);
    m_range->setTheme(*m_theme);
    const ActionId themes[] = {ActionId::ThemeSystem, ActionId::ThemeLight, ActionId::ThemeDark, ActionId::ThemeHighContrast};
    (*m_actions)[themes[static_cast<int>(choice)]]->setChecked(true);
    if (m_mode == Mode::Run) selectionChanged(); // its swatch is in the theme's colours
    emit themeChanged();
}

void MainWindow::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::ThemeChange && PreferenceStore::instance().value().theme == ThemeChoice::System) {
        m_systemDark = looksDark(style()->standardPalette());
        applyTheme();
    }
    QMainWindow::changeEvent(event);
}

void MainWindow::resizeEvent(QResizeEvent* event)
{
    QMainWindow::resizeEvent(event);
    refreshTitle();
}

void MainWindow::setMode(Mode mode)
{
    m_mode = mode;
    if (mode != Mode::Run) {
        m_tool = Tool::None;
        ++m_toolGeneration;
        m_toolPending = m_toolAgain = false;
        m_toolInput.reset();
        m_timeline->setTrackHeight(0);
        m_timeline->setTitle(tr("Timeline"));
    }
    m_pages->setCurrentIndex(mode == Mode::Empty ? 0 : 1);
    m_panels->setCurrentWidget(mode == Mode::Compare ? static_cast<QWidget*>(m_comparePanel)
                               : mode == Mode::Edit  ? static_cast<QWidget*>(m_editPanel)
                                                     : toolPanel());
    m_pageTitle.clear();
    showPanels();
    m_runsPanel->setVisible((*m_actions)[ActionId::RunsList]->isChecked() && runs()->rowCount() > 0);
    m_memory->setVisible((*m_actions)[ActionId::Memory]->isChecked());
    m_timeline->setEditMode(mode == Mode::Edit);
    m_timeline->setTitle(mode == Mode::Compare ? tr("Shared time axis") : mode == Mode::Edit ? tr("Edit")
                                                                                             : tr("Timeline"));
    if (mode != Mode::Edit) {
        m_overlay->clear();
        m_timeline->setDragFeedback(std::nullopt);
    }
    if (mode != Mode::Compare) runs()->setMarks({});
    if (mode == Mode::Empty) {
        m_timeline->setPanels({});
        m_memory->setPanels({});
        m_legend->setPanels({});
        m_side->setRun(nullptr, nullptr);
        m_welcome->setRecent(recentFiles());
        m_welcome->setRunsListed(!runs()->refs().empty());
    }
    fillSteps();
    refreshActions();
    refreshTitle();
    refreshStatus();
    emit modeChanged();
    m_banner->review();
}

void MainWindow::showPanels()
{
    m_panelColumn->parentWidget()->setVisible(m_mode != Mode::Empty && m_pageTitle.isEmpty() && (*m_actions)[ActionId::SidePanel]->isChecked());
}

void MainWindow::addPage(QWidget* page)
{
    page->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Ignored);
    m_pages->addWidget(page);
}

void MainWindow::showPage(QWidget* page, const QString& title)
{
    m_pageTitle = page != nullptr ? title : QString();
    m_pageStatus.clear();
    if (page != nullptr)
        m_pages->setCurrentWidget(page);
    else
        m_pages->setCurrentIndex(m_mode == Mode::Empty ? 0 : 1);
    showPanels();
    refreshTitle();
    refreshStatus();
    m_banner->review();
}

// Whether the content shown after all pending requests is still on screen: the run and its step, the comparison, the page.
std::function<bool()> MainWindow::whileShown()
{
    struct Place {
        Mode mode;
        QString page;
        RunRef shown, other;
        bool operator==(const Place&) const = default;
    };
    const auto place = [this] { return Place{m_mode, m_pageTitle, shownRef(), m_other ? m_other->ref : RunRef{}}; };
    const auto coming = [this] { return m_pending || !m_openFirst.isEmpty() || m_library->busy(); };
    auto held = std::make_shared<std::optional<Place>>();
    auto* settles = new QTimer(this); // its subject is what the sender shows next
    connect(settles, &QTimer::timeout, this, [held, place, coming, settles] {
        if (coming()) return;
        *held = place();
        settles->deleteLater();
    });
    settles->start(0);
    return [this, held, place] { return m_pending || !*held || **held == place(); };
}

void MainWindow::setPageStatus(const QString& text)
{
    m_pageStatus = text;
    refreshStatus();
}

void MainWindow::refreshTitle()
{
    QString title = m_pageTitle;
    if (!title.isEmpty())
        ;
    else if (m_mode == Mode::Compare && m_shown && m_other)
        title = m_compare->title();
    else if (m_mode == Mode::Edit && m_editSource)
        title = tr("%1 (edited)%2").arg(runTitle(m_editSource->run->info), m_editor->changed() ? QStringLiteral(" *") : QString());
    else if (m_mode == Mode::Run && m_shown)
        title = runTitle(m_shown->run->info);
    if (m_pageTitle.isEmpty() && m_shown && m_mode == Mode::Run && !m_library->isSimulated(m_shown->ref.file))
        title = QFileInfo(m_shown->ref.file).fileName() + QStringLiteral(": ") + title;
    title = title.isEmpty() ? QStringLiteral("Stagewright") : title + QStringLiteral(" — Stagewright");
    setWindowTitle(title);
    m_titleLabel->setText(title);
    m_titleLabel->adjustSize();
    QRect menus;
    for (const QAction* action : menuBar()->actions())
        menus |= menuBar()->actionGeometry(const_cast<QAction*>(action));
    const int x = (width() - m_titleLabel->width()) / 2;
    m_titleLabel->setVisible(x > menus.right() + 16);
    m_titleLabel->move(x, (menuBar()->height() - m_titleLabel->height()) / 2);
}

void MainWindow::refreshStatus()
{
    if (!m_pageTitle.isEmpty()) {
        m_statusLeft->setText(m_pageStatus);
        m_statusRight->clear();
        m_statusClock->clear();
        return;
    }
    if (m_mode == Mode::Empty || !m_shown) {
        m_statusLeft->setText(m_pending ? tr("Reading…") : tr("No run is open"));
        m_statusRight->clear();
        m_statusClock->clear();
        return;
    }
    QStringList parts = m_timeline->statusText().split(QStringLiteral("·"));
    for (QString& part : parts)
        part = part.trimmed();
    QString left = parts.isEmpty() ? QString() : parts.takeFirst();
    if (m_mode == Mode::Run) {
        const int steps = m_shown->stepCount;
        if (m_shown->steps && m_shown->partial)
            left += tr(", all %1 steps").arg(steps);
        else if (m_shown->steps)
            left += tr(", steps %1 to %2 of %3; figures of step %4").arg(m_shown->steps->first + 1).arg(m_shown->steps->last + 1).arg(steps).arg(m_shown->step + 1);
        else
            left += steps > 1 ? tr(", step %1 of %2").arg(m_shown->step + 1).arg(steps) : tr(", one step");
        if (m_shown->step < m_shown->run->info.warmupSteps) left += tr(" (warm-up)");
    } else if (m_mode == Mode::Compare) {
        left += QStringLiteral(", ") + m_compare->statusText();
    } else {
        left += tr(", simulated as you edit");
    }
    m_statusLeft->setText(left);
    for (QString& part : parts)
        if (!part.isEmpty()) part[0] = part[0].toUpper();
    m_statusRight->setText(parts.join(QStringLiteral("    ")));
    QString clock;
    if (m_mode == Mode::Edit) {
        clock = tr("model: %1").arg(QString::fromStdString(m_editor->costs().origin.empty() ? std::string("costs of the run") : m_editor->costs().origin));
    } else {
        clock = provenanceText(m_shown->run->info);
        if (m_mode == Mode::Compare && m_other && provenanceText(m_other->run->info) != clock) clock = tr("A: %1, B: %2").arg(clock, provenanceText(m_other->run->info));
    }
    m_statusClock->setText(clock);
}

void MainWindow::splitViews()
{
    const int height = m_rows->height();
    if (height <= 0) return;
    const int most = !m_memory->isVisibleTo(m_rows) ? height : height * (m_timeline->panels().size() > 1 ? 72 : 62) / 100;
    const int wanted = m_memory->isVisibleTo(m_rows) && !m_memory->known() ? height - m_memory->minimumSizeHint().height() : std::min(m_timeline->sizeHint().height(), most);
    m_rows->setSizes({wanted, height - wanted});
}

void MainWindow::ready()
{
    refreshActions();
    refreshTitle();
    refreshStatus();
    emit runShown();
    m_banner->review();
}

QString MainWindow::bannerText() const { return m_banner->text(); }

bool MainWindow::settled() const { return m_compare->settled() && m_plans->settled() && m_import->settled() && m_exchange->settled() && !m_search->searching() && m_device->settled() && m_tables->settled() && m_edit->settled() && !m_notes->busy() && !m_pending && !m_toolPending && !m_library->busy() && !m_process->running() && !m_taking && m_openFirst.isEmpty(); }

} // namespace stagewright
