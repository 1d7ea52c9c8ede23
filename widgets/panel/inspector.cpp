#include "widgets/panel/inspector.h"

#include <QStackedWidget>
#include <QTabBar>
#include <QVBoxLayout>

#include "widgets/literals.h"

namespace stagewright {

Inspector::Inspector(QWidget* parent) : QWidget(parent), m_tabs(new QTabBar(this)), m_pages(new QStackedWidget(this))
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    m_tabs->setObjectName(u"inspectorTabs"_s);
    m_tabs->setAccessibleName(u"What is shown at the right"_s);
    m_tabs->setDrawBase(false);
    m_tabs->setExpanding(false);
    m_tabs->setElideMode(Qt::ElideNone);
    for (const auto& [title, tip] :
         {std::pair{u"Summary"_s, u"Figures of the step shown, causes and what would help"_s},
          {u"Selection"_s, u"The selected op, kernel, gap or range  (Q)"_s},
          {u"Compare"_s, u"What differs between runs"_s}})
        m_tabs->setTabToolTip(m_tabs->addTab(title), tip);
    column->addWidget(m_tabs);
    column->addWidget(m_pages, 1);
    connect(m_tabs, &QTabBar::currentChanged, this, &Inspector::chosen);
}

Inspector::Tab Inspector::current() const { return static_cast<Tab>(m_tabs->currentIndex()); }

void Inspector::setPage(Tab tab, QWidget* page)
{
    m_shown[static_cast<std::size_t>(tab)] = page;
    if (current() == tab) showCurrent();
}

void Inspector::setTool(const QString& title, QWidget* page)
{
    constexpr int at = static_cast<int>(Tab::Tool);
    if (page == nullptr) {
        if (m_tabs->count() <= at) return;
        if (current() == Tab::Tool) open(Tab::Summary);
        m_tabs->removeTab(at);
        return;
    }
    if (m_tabs->count() <= at) m_tabs->addTab(title);
    m_tabs->setTabText(at, title);
    m_shown[at] = page;
    open(Tab::Tool);
}

void Inspector::showAlone(QWidget* page)
{
    m_alone = page;
    m_tabs->setHidden(page != nullptr);
    showCurrent();
}

void Inspector::open(Tab tab)
{
    m_own = true;
    m_tabs->setCurrentIndex(static_cast<int>(tab));
    m_own = false;
    showCurrent();
}

// By the reader.
void Inspector::chosen(int)
{
    if (m_own) return;
    m_follows = !m_selected || current() == Tab::Selection;
    m_back = current();
    showCurrent();
}

void Inspector::setSelected(bool any)
{
    if (any == m_selected && (!any || current() != Tab::Summary)) return;
    m_selected = any;
    if (any && m_follows && current() == Tab::Summary) {
        m_back = Tab::Summary;
        open(Tab::Selection);
    } else if (!any && current() == Tab::Selection && m_back == Tab::Summary) {
        open(Tab::Summary);
    }
}

void Inspector::showCurrent()
{
    QWidget* page = m_alone != nullptr ? m_alone : m_shown[static_cast<std::size_t>(m_tabs->currentIndex())];
    for (QWidget* one = page; one != nullptr && one != this; one = one->parentWidget())
        if (auto* stack = qobject_cast<QStackedWidget*>(one->parentWidget())) stack->setCurrentWidget(one);
}

} // namespace stagewright
