// Inspector: what is at the right of the views, under fixed tabs: Summary, Selection, Compare, and one more while a
// tool is used. A new selection opens its tab from the summary, and the summary comes back as it was once nothing is
// selected; whoever goes back to the summary before that stays there until they open the selection again. GUI thread
// only.
#pragma once

#include <array>

#include <QPointer>
#include <QWidget>

class QStackedWidget;
class QTabBar;

namespace stagewright {

class Inspector : public QWidget {
    Q_OBJECT
public:
    enum class Tab { Summary, Selection, Compare, Tool };
    explicit Inspector(QWidget* parent = nullptr);

    QStackedWidget* pages() { return m_pages; } // owns what is shown
    // What a tab shows: a page, or one in a stack that is a page.
    void setPage(Tab tab, QWidget* page);
    void setTool(const QString& title, QWidget* page); // its tab, opened; null: none
    void showAlone(QWidget* page);                     // without tabs; null: with them again
    void open(Tab tab);
    Tab current() const;
    void setSelected(bool any);

private:
    void chosen(int index);
    void showCurrent();

    QTabBar* m_tabs;
    QStackedWidget* m_pages;
    std::array<QPointer<QWidget>, 4> m_shown;
    QPointer<QWidget> m_alone;
    Tab m_back = Tab::Summary; // where the end of a selection leads
    bool m_follows = true;     // a selection opens its tab
    bool m_selected = false;
    bool m_own = false; // a tab is changed by this class
};

} // namespace stagewright
