#include "widgets/search/find_field.h"

#include <algorithm>

#include <QLabel>

#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr int clearButton = 30; // the room that Qt gives it

} // namespace

FindField::FindField(QWidget* parent)
    : QLineEdit(parent), m_answer(makeLabel({}, "secondary", this)), m_fault(new QLabel(window()))
{
    m_answer->setObjectName(u"findAnswer"_s);
    m_answer->setAttribute(Qt::WA_TransparentForMouseEvents);
    m_answer->hide();
    m_fault->setObjectName(u"findFault"_s);
    m_fault->setProperty("tone", u"error"_s);
    m_fault->setWordWrap(true);
    m_fault->setMargin(6);
    m_fault->setAutoFillBackground(true);
    m_fault->setFrameShape(QFrame::StyledPanel);
    m_fault->hide();
    connect(this, &QLineEdit::textEdited, this, [this] {
        setAnswer({}, true);
        setFault({});
    });
}

void FindField::setAnswer(const QString& text, bool found)
{
    setRole(m_answer, found ? "secondary" : "worse");
    m_answer->setText(text);
    m_answer->setVisible(!text.isEmpty());
    if (!text.isEmpty()) setFault({});
    place();
}

void FindField::setFault(const QString& text)
{
    if (!text.isEmpty()) setAnswer({}, false);
    m_fault->setText(text);
    m_fault->setVisible(!text.isEmpty());
    place();
}

QString FindField::answer() const { return m_fault->text().isEmpty() ? m_answer->text() : m_fault->text(); }

void FindField::place()
{
    const int wide = m_answer->text().isEmpty() ? 0 : m_answer->sizeHint().width();
    setTextMargins(0, 0, wide == 0 ? 0 : wide + 6, 0);
    m_answer->setGeometry(width() - clearButton - wide, 0, wide, height());
    if (m_fault->text().isEmpty()) return;
    if (m_fault->parentWidget() != window()) {
        m_fault->setParent(window());
        m_fault->show();
    }
    const int most = std::max(width(), 300);
    m_fault->setFixedWidth(std::min(most, m_fault->fontMetrics().horizontalAdvance(m_fault->text()) + 24));
    m_fault->setFixedHeight(m_fault->heightForWidth(m_fault->width()));
    const QPoint corner = mapTo(window(), QPoint(width(), height() + 2));
    m_fault->move(std::max(0, corner.x() - m_fault->width()), corner.y());
    m_fault->raise();
}

void FindField::resizeEvent(QResizeEvent* event)
{
    QLineEdit::resizeEvent(event);
    place();
}

void FindField::moveEvent(QMoveEvent* event)
{
    QLineEdit::moveEvent(event);
    place();
}

void FindField::hideEvent(QHideEvent* event)
{
    QLineEdit::hideEvent(event);
    setFault({});
}

void FindField::focusOutEvent(QFocusEvent* event)
{
    QLineEdit::focusOutEvent(event);
    setFault({});
}

} // namespace stagewright
