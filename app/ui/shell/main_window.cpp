#include "app/ui/shell/main_window.h"

#include <utility>
#include <vector>

#include <QAbstractButton>
#include <QComboBox>
#include <QDragEnterEvent>
#include <QGuiApplication>
#include <QLabel>
#include <QMimeData>
#include <QScreen>
#include <QSettings>
#include <QSplitter>
#include <QStackedWidget>
#include <QTimer>

#include "app/ui/shell/appearance.h"
#include "app/ui/shell/captions.h"
#include "app/ui/shell/features.h"
#include "app/ui/shell/key_router.h"
#include "app/ui/shell/menus.h"
#include "app/ui/shell/screen_fit.h"
#include "app/ui/shell/tool_bar.h"
#include "app/ui/shell/window_set.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/panel/side_panel.h"
#include "widgets/runs/runs_panel.h"

namespace stagewright {
namespace {

std::vector<QWidget*> tabStops(QWidget* group)
{
    std::vector<QWidget*> stops;
    for (QWidget* one = group; one != nullptr;) {
        if ((one->focusPolicy() & Qt::TabFocus) != 0 && (one == group || group->isAncestorOf(one)))
            stops.push_back(one);
        one = one->nextInFocusChain();
        if (one == group) break;
    }
    return stops;
}

// Tab goes from the one to the other, although the other was made later.
void tabAfter(QWidget* anchor, QWidget* group)
{
    const std::vector<QWidget*> before = tabStops(anchor);
    QWidget* last = before.empty() ? nullptr : before.back();
    for (QWidget* stop : tabStops(group)) {
        if (last != nullptr) QWidget::setTabOrder(last, stop);
        last = stop;
    }
}

} // namespace

MainWindow::MainWindow(QWidget* parent) : QMainWindow(parent)
{
    Appearance::prepare();
    setAcceptDrops(true);
    setObjectName(u"stagewright"_s);
    m_workspace = new Workspace(*this, allActions());
    buildToolBar(*m_workspace);
    buildMenus(*m_workspace);
    new Captions(*m_workspace); // owned by the workspace, like the next one
    new KeyRouter(*m_workspace);
    layOutFeatures();
    WindowSet::instance().add(this);
    restoreLayout();
    m_appearance = new Appearance(*m_workspace);
    emit m_workspace->laidOut();
    restoreState(QSettings().value(u"window/docks"_s).toByteArray());
    m_workspace->shown().showNothing();
}

MainWindow::~MainWindow()
{
    for (Feature* feature : m_workspace->features()) feature->closing();
    for (QObject* child : findChildren<QObject*>()) child->disconnect(this);
    delete m_workspace; // before the views that its features refer to
}

void MainWindow::layOutFeatures()
{
    Room& room = m_workspace->room();
    QWidget* lastPanel = m_workspace->views().side;
    for (const FeatureEntry& entry : allFeatures()) {
        Feature* feature = entry.make(*m_workspace);
        m_workspace->add(feature);
        const FeatureParts parts = feature->parts();
        for (const FeatureParts::Dock& dock : parts.docks) room.addDock(dock.dock, dock.area, dock.tabbed);
        for (QWidget* page : parts.pages) room.addPage(page);
        for (QWidget* panel : parts.panels) {
            room.panels()->addWidget(panel);
            tabAfter(std::exchange(lastPanel, panel), panel);
        }
        if (parts.firstPage != nullptr) {
            room.setFirstPage(parts.firstPage);
            tabAfter(m_workspace->views().runs, parts.firstPage);
        }
    }
}

void MainWindow::restoreLayout()
{
    Room& room = m_workspace->room();
    QSettings settings;
    // No larger than the screen; a picture drawn without a screen has the requested size.
    const bool real = QGuiApplication::platformName() != "offscreen"_L1;
    const QSize place = real ? screen()->availableSize() : QSize(1600, 1000);
    resize(real ? firstSize(QSize(1600, 1000), place) : place); // how large its frame is shows later (keepOnScreen)
    const bool tight = real && place.width() < 900;             // large text on a small screen
    if (tight) room.panels()->setMinimumWidth(200);
    restoreGeometry(settings.value(u"window/geometry"_s).toByteArray());
    m_startSize = size();
    const auto columns = settings.value(u"window/columns"_s).toByteArray();
    if (!columns.isEmpty()) room.columns()->restoreState(columns);
    const bool list = settings.value(u"window/runsList"_s, true).toBool() && !tight;
    m_workspace->actions()["runsList"]->setChecked(list);
    m_workspace->views().runs->setVisible(list);
}

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
    if (event->spontaneous() || m_placed || QGuiApplication::platformName() == "offscreen"_L1) return;
    m_placed = true;
    for (const int later : {60, 400}) QTimer::singleShot(later, this, &MainWindow::keepOnScreen);
}

void MainWindow::closeEvent(QCloseEvent* event)
{
    for (Feature* feature : m_workspace->features())
        if (!feature->mayClose()) {
            event->ignore();
            return;
        }
    emit m_workspace->closing(); // features put back what they had put away
    QSettings settings;
    settings.setValue(u"window/geometry"_s, saveGeometry());
    settings.setValue(u"window/columns"_s, m_workspace->room().columns()->saveState());
    settings.setValue(u"window/docks"_s, saveState());
    settings.setValue(u"window/runsList"_s, m_workspace->actions()["runsList"]->isChecked());
    QMainWindow::closeEvent(event);
}

void MainWindow::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::ThemeChange && m_appearance != nullptr) m_appearance->systemChanged();
    QMainWindow::changeEvent(event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event)
{
    int files = 0;
    for (const QUrl& url : event->mimeData()->urls())
        if (url.isLocalFile()) ++files;
    if (files == 0) return;
    event->acceptProposedAction();
    if (m_dropSign == nullptr) {
        m_dropSign = new QLabel(centralWidget());
        m_dropSign->setObjectName(u"dropSign"_s);
        m_dropSign->setAlignment(Qt::AlignCenter);
        m_dropSign->setWordWrap(true);
        m_dropSign->setAttribute(Qt::WA_TransparentForMouseEvents);
    }
    m_dropSign->setText(files == 1 ? u"Drop the file: a run opens, a trace is imported."_s
                                   : u"Drop %1 files: runs open, traces are imported."_s.arg(files));
    m_dropSign->setGeometry(centralWidget()->rect().adjusted(12, 12, -12, -12));
    m_dropSign->show();
    m_dropSign->raise();
}

void MainWindow::dragLeaveEvent(QDragLeaveEvent* event)
{
    if (m_dropSign != nullptr) m_dropSign->hide();
    QMainWindow::dragLeaveEvent(event);
}

void MainWindow::dropEvent(QDropEvent* event)
{
    if (m_dropSign != nullptr) m_dropSign->hide();
    QStringList paths;
    for (const QUrl& url : event->mimeData()->urls())
        if (url.isLocalFile()) paths << url.toLocalFile();
    m_workspace->feature<FileOpening>()->openDropped(paths);
    event->acceptProposedAction();
}

void MainWindow::keyPressEvent(QKeyEvent* event)
{
    if (event->key() != Qt::Key_Escape) {
        QMainWindow::keyPressEvent(event);
        return;
    }
    for (Feature* feature : m_workspace->features())
        if (feature->escape()) return;
    if (m_workspace->banner()->isVisible()) m_workspace->banner()->clear();
}

bool MainWindow::event(QEvent* event)
{
    // Space and Return press the focused button or open the focused box, whatever they do elsewhere.
    if (event->type() == QEvent::ShortcutOverride) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const QWidget* focus = focusWidget();
        const bool pressable =
            qobject_cast<const QAbstractButton*>(focus) != nullptr || qobject_cast<const QComboBox*>(focus) != nullptr;
        const bool presses = key->key() == Qt::Key_Space || key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
        const bool plain = (key->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier)) == 0;
        if (plain && pressable && presses) {
            event->accept();
            return true;
        }
    }
    return QMainWindow::event(event);
}

} // namespace stagewright
