#include "app/ui/shell/captions.h"

#include <QEvent>
#include <QGuiApplication>
#include <QLabel>
#include <QMenuBar>
#include <QProgressBar>
#include <QStatusBar>
#include <QTimer>
#include <QWindow>

#include "app/ui/workspace/workspace.h"
#include "widgets/literals.h"
#include "widgets/preferences/preferences.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr int shortestTitle = 140; // a shorter one says nothing

// The window has a title bar: the title is there already.
bool titledByDesktop(const QMainWindow& window)
{
    const QString platform = QGuiApplication::platformName();
    if (platform == "xcb"_L1)
        return window.windowHandle() != nullptr && window.windowHandle()->frameMargins().top() > 0;
    return platform != "offscreen"_L1 && !window.isFullScreen();
}

} // namespace

Captions::Captions(Workspace& workspace)
    : QObject(&workspace), m_workspace(workspace), m_title(makeLabel({}, "title", workspace.window()->menuBar())),
      m_left(new QLabel(workspace.window())), m_reading(new QProgressBar(workspace.window())),
      m_clock(new QLabel(workspace.window())), m_right(new QLabel(workspace.window()))
{
    m_title->setAttribute(Qt::WA_TransparentForMouseEvents);
    m_title->setAlignment(Qt::AlignCenter);
    QStatusBar* bar = workspace.room().statusBar();
    bar->setSizeGripEnabled(false);
    m_reading->setRange(0, 0);
    m_reading->setTextVisible(false);
    m_reading->setFixedWidth(90);
    m_reading->hide();
    bar->addWidget(m_left);
    bar->addWidget(m_reading);
    bar->addPermanentWidget(m_clock);
    bar->addPermanentWidget(m_right);
    const auto calm = [this] { // a busy bar moves back and forth
        m_reading->setMaximum(PreferenceStore::instance().value().reducedMotion ? 1 : 0);
        m_reading->setTextVisible(false);
    };
    calm();
    connect(&PreferenceStore::instance(), &PreferenceStore::changed, this, calm);
    connect(workspace.library(), &RunLibrary::busyChanged, this,
            [this] { m_reading->setVisible(m_workspace.library()->busy()); });
    connect(&workspace, &Workspace::captionsChanged, this, &Captions::refresh);
    connect(&workspace.room(), &Room::pageChanged, this, &Captions::refresh);
    connect(workspace.views().timeline, &TimelineView::statusChanged, this, &Captions::refreshStatus);
    workspace.window()->installEventFilter(this);
}

bool Captions::eventFilter(QObject* watched, QEvent* event)
{
    // its frame is known a little later
    if (event->type() == QEvent::Show) QTimer::singleShot(400, this, &Captions::refreshTitle);
    if (event->type() == QEvent::Resize) QMetaObject::invokeMethod(this, &Captions::refreshTitle, Qt::QueuedConnection);
    return QObject::eventFilter(watched, event);
}

void Captions::refresh()
{
    refreshTitle();
    refreshStatus();
}

void Captions::refreshTitle()
{
    QMainWindow* window = m_workspace.window();
    QString title = m_workspace.room().pageTitle();
    if (title.isEmpty()) title = m_workspace.shown().captions().title;
    title = shownName(title); // names come from files
    const QString brief = title.isEmpty() ? u"Stagewright"_s : title;
    if (!title.isEmpty()) title += u" — "_s;
    title += u"Stagewright"_s;
    window->setWindowTitle(title);
    QRect menus;
    for (const QAction* action : window->menuBar()->actions())
        menus |= window->menuBar()->actionGeometry(const_cast<QAction*>(action));
    constexpr int gap = 16;
    const int room = window->width() - 2 * (menus.right() + gap); // in the middle of the window, beside the menus
    const bool whole = m_title->fontMetrics().horizontalAdvance(title) <= room;
    m_title->setText(m_title->fontMetrics().elidedText(whole ? title : brief, Qt::ElideRight, room));
    m_title->setToolTip(whole ? QString() : title);
    m_title->adjustSize();
    m_title->setVisible(room > shortestTitle && !titledByDesktop(*window));
    m_title->move((window->width() - m_title->width()) / 2, (window->menuBar()->height() - m_title->height()) / 2);
}

void Captions::refreshStatus()
{
    const Shown& shown = m_workspace.shown();
    const bool page = !m_workspace.room().pageTitle().isEmpty();
    if (page || shown.mode() == Shown::Mode::Empty || !shown.view()) {
        m_left->setText(page              ? m_workspace.room().pageStatus()
                        : shown.pending() ? u"Reading…"_s
                                          : u"No run is open. Open one (Ctrl+O) or record one (Ctrl+R)."_s);
        m_right->clear();
        m_clock->clear();
        return;
    }
    const Shown::Captions own = shown.captions();
    QStringList parts = m_workspace.views().timeline->statusText().split(u"·"_s);
    for (QString& part : parts) part = part.trimmed();
    const QString left = parts.isEmpty() ? QString() : parts.takeFirst();
    m_left->setText(left + own.status);
    for (QString& part : parts) part = sentence(part);
    m_right->setText(parts.join(u"    "_s));
    m_clock->setText(own.clock);
}

} // namespace stagewright
