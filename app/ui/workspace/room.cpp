#include "app/ui/workspace/room.h"

#include <utility>

#include <QMenu>
#include <QSplitter>
#include <QStackedWidget>
#include <QStatusBar>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/panel/inspector.h"

namespace stagewright {

Room::Room(QMainWindow& window) : m_window(window)
{
    auto* central = new QWidget(&window);
    m_outer = new QVBoxLayout(central);
    m_outer->setContentsMargins(0, 0, 0, 0);
    m_outer->setSpacing(0);
    m_columns = new QSplitter(Qt::Horizontal, central);
    m_columns->setHandleWidth(1);
    m_columns->setChildrenCollapsible(false);
    m_outer->addWidget(m_columns, 1);

    m_pages = new QStackedWidget(m_columns);
    m_columns->addWidget(m_pages);
    m_views = new QWidget(m_pages);
    m_views->setObjectName(u"canvas"_s);
    m_views->setAttribute(Qt::WA_StyledBackground);
    m_work = new QVBoxLayout(m_views);
    m_work->setContentsMargins(0, 0, 0, 0);
    m_work->setSpacing(0);
    m_rows = new QSplitter(Qt::Vertical, m_views);
    m_rows->setHandleWidth(1);
    m_rows->setChildrenCollapsible(false);
    m_work->addWidget(m_rows, 1);
    m_pages->addWidget(m_views);
    connect(m_pages, &QStackedWidget::currentChanged, this, &Room::fitPages);

    auto* column = new QWidget(m_columns);
    column->setObjectName(u"panel"_s);
    column->setAttribute(Qt::WA_StyledBackground);
    column->setMinimumWidth(320);
    m_panelColumn = new QVBoxLayout(column);
    m_panelColumn->setContentsMargins(0, 0, 0, 0);
    m_panelColumn->setSpacing(0);
    m_inspector = new Inspector(column);
    m_panelColumn->addWidget(m_inspector, 1);
    m_columns->addWidget(column);
    window.setCentralWidget(central);
}

QStackedWidget* Room::panels() { return m_inspector->pages(); }

void Room::tell(const QString& text, int milliseconds) { statusBar()->showMessage(text, milliseconds); }

// A hidden page must not make the window taller or wider; pages of addPage take the given width.
void Room::fitPages()
{
    for (int i = 0; i < m_pages->count(); ++i) {
        QWidget* page = m_pages->widget(i);
        const bool current = page == m_pages->currentWidget(), own = page == m_views || page == m_first;
        page->setSizePolicy(current && own ? QSizePolicy::Preferred : QSizePolicy::Ignored,
                            current ? QSizePolicy::Preferred : QSizePolicy::Ignored);
    }
}

void Room::setFirstPage(QWidget* page)
{
    m_first = page;
    m_pages->insertWidget(0, page);
    fitPages();
}

void Room::addPage(QWidget* page)
{
    page->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Ignored);
    m_pages->addWidget(page);
}

void Room::showViews(bool anyRun)
{
    m_anyRun = anyRun;
    m_pages->setCurrentWidget(anyRun || m_first == nullptr ? m_views : m_first);
    m_pageTitle.clear();
    for (QDockWidget* dock : std::exchange(m_away, {})) dock->show();
    emit pageChanged();
}

void Room::showPage(QWidget* page, const QString& title)
{
    m_pageStatus.clear();
    if (page == nullptr) {
        showViews(m_anyRun);
        return;
    }
    m_pageTitle = title;
    m_pages->setCurrentWidget(page);
    for (QDockWidget* dock : m_docks) // they are about the run, which is not shown now
        if (!dock->isHidden()) {
            dock->hide();
            m_away.push_back(dock);
        }
    emit pageChanged();
}

void Room::setPageStatus(const QString& text)
{
    m_pageStatus = text;
    emit pageChanged();
}

void Room::addDock(QDockWidget* dock, Qt::DockWidgetArea area, bool tabbed)
{
    m_window.addDockWidget(area, dock);
    if (tabbed && m_lastTabbed != nullptr) m_window.tabifyDockWidget(m_lastTabbed, dock);
    if (tabbed) m_lastTabbed = dock;
    dock->hide();
    m_docks.push_back(dock);
    connect(dock, &QDockWidget::visibilityChanged, this, &Room::docksChanged, Qt::QueuedConnection);
}

} // namespace stagewright
