#include "widgets/lessons/steady_scroll.h"

#include <algorithm>
#include <utility>

#include <QAbstractButton>
#include <QApplication>
#include <QCursor>
#include <QLineEdit>
#include <QScrollBar>

namespace stagewright {

SteadyScroll::SteadyScroll(QWidget* parent) : QScrollArea(parent)
{
    connect(verticalScrollBar(), &QScrollBar::rangeChanged, this, &SteadyScroll::keep); // the page has been laid out
    connect(verticalScrollBar(), &QScrollBar::valueChanged, this, [this] {
        if (!m_keeping) m_anchor = nullptr; // somebody scrolled
    });
}

int SteadyScroll::yOf(const QWidget* of) const { return of->mapTo(viewport(), QPoint()).y(); }

QWidget* SteadyScroll::readersPlace() const
{
    if (widget() == nullptr || verticalScrollBar()->maximum() == 0) return nullptr;
    // of this window, active or not
    if (QWidget* under = QApplication::widgetAt(QCursor::pos()); under != nullptr && widget()->isAncestorOf(under)) {
        while (under != nullptr && under->parentWidget() != widget() &&
               qobject_cast<QAbstractButton*>(under) == nullptr && qobject_cast<QLineEdit*>(under) == nullptr)
            under = under->parentWidget();
        if (under != nullptr) return under;
    }
    const auto inView = [this](const QWidget* one) { return yOf(one) >= 0 && yOf(one) < viewport()->height(); };
    QWidget* focus = QApplication::focusWidget();
    if (focus != nullptr && widget()->isAncestorOf(focus) && inView(focus)) return focus;
    QWidget* first = nullptr;
    for (QObject* child : widget()->children())
        if (auto* part = qobject_cast<QWidget*>(child);
            part != nullptr && part->isVisible() && inView(part) && (first == nullptr || part->y() < first->y()))
            first = part;
    return first;
}

void SteadyScroll::hold()
{
    if (m_holds++ > 0) return;
    m_anchor = readersPlace();
    if (m_anchor) m_y = yOf(m_anchor);
}

void SteadyScroll::release()
{
    keep();
    m_holds = std::max(0, m_holds - 1);
    if (m_holds == 0) m_anchor = nullptr;
}

void SteadyScroll::keep()
{
    if (!m_anchor || !m_anchor->isVisible()) return;
    const bool nested = std::exchange(m_keeping, true);
    verticalScrollBar()->setValue(verticalScrollBar()->value() + yOf(m_anchor) - m_y);
    m_keeping = nested;
}

} // namespace stagewright
