// Room: the places of a window where features put what they show: the work area, the panels at the right, pages that
// replace the views, docks, menus, the status bar. It owns the central widget. GUI thread only.
#pragma once

#include <map>
#include <vector>

#include <QDockWidget>
#include <QMainWindow>
#include <QString>

#include "app/ui/workspace/actions.h"

class QMenu;
class QSplitter;
class QStackedWidget;
class QStatusBar;
class QVBoxLayout;

namespace stagewright {

class Inspector;

class Room : public QObject {
    Q_OBJECT
public:
    explicit Room(QMainWindow& window);

    QMainWindow& window() { return m_window; }
    QVBoxLayout* workArea() { return m_work; }           // the views over the legend; room above and below them
    QVBoxLayout* panelColumn() { return m_panelColumn; } // the panels at the right; room above them
    Inspector* inspector() { return m_inspector; }       // them under their tabs
    QStackedWidget* panels();                            // the pages of the inspector
    QSplitter* columns() { return m_columns; }           // runs list, work, panel
    QSplitter* rows() { return m_rows; }                 // timeline, memory
    QStatusBar* statusBar() { return m_window.statusBar(); }
    void tell(const QString& text, int milliseconds); // in the status bar

    void setMenus(const std::map<MenuId, QMenu*>& menus) { m_menus = menus; }
    QMenu* menu(MenuId id) const { return m_menus.at(id); }

    QStackedWidget* pages() { return m_pages; }
    void setFirstPage(QWidget* page);                        // in place of the views while no run is shown
    void addPage(QWidget* page);                             // in place of the views, when shown
    void showViews(bool anyRun);                             // the views, or the first page
    void showPage(QWidget* page, const QString& title);      // null: back to the views
    void setPageStatus(const QString& text);                 // of the page shown, in the status bar
    const QString& pageTitle() const { return m_pageTitle; } // empty: the views are shown
    const QString& pageStatus() const { return m_pageStatus; }

    // hidden at first; tabbed: with the tabbed ones before it
    void addDock(QDockWidget* dock, Qt::DockWidgetArea area, bool tabbed);

signals:
    void pageChanged();
    void docksChanged(); // one was opened or closed

private:
    void fitPages();

    QMainWindow& m_window;
    std::map<MenuId, QMenu*> m_menus;
    QVBoxLayout* m_outer;
    QSplitter* m_columns;
    QStackedWidget* m_pages;
    QWidget* m_views; // the page with the views
    QWidget* m_first = nullptr;
    QVBoxLayout* m_work;
    QSplitter* m_rows;
    Inspector* m_inspector;
    QVBoxLayout* m_panelColumn;
    QDockWidget* m_lastTabbed = nullptr;
    std::vector<QDockWidget*> m_docks;
    std::vector<QDockWidget*> m_away; // hidden while a page is shown
    QString m_pageTitle;
    QString m_pageStatus;
    bool m_anyRun = false;
};

} // namespace stagewright
