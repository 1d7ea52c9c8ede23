#include "widgets/edit/schedule_text.h"

#include <algorithm>

#include <QFontDatabase>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QRegularExpression>
#include <QScrollBar>
#include <QTextBlock>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr int readPause = 150;          // ms after the last key
constexpr int sessionPause = 2000;      // ms: typing within this time is one change
constexpr int sessionBase = 0x40000000; // merge ids of typing, distinct from those of nudges

} // namespace

ScheduleTextEdit::ScheduleTextEdit(QWidget* parent) : QPlainTextEdit(parent)
{
    setLineWrapMode(NoWrap);
    setTabChangesFocus(true);
    setAcceptDrops(false); // the window handles file drops
    QFont font = QFontDatabase::systemFont(QFontDatabase::FixedFont);
    font.setFamilies({u"DejaVu Sans Mono"_s, font.family()});
    font.setPixelSize(12);
    setFont(font);
    setStyleSheet(
        u"QPlainTextEdit { font-family: \"DejaVu Sans Mono\", monospace; font-size: 12px; border-radius: 6px; }"_s);
}

void ScheduleTextEdit::setRightMargin(int pixels)
{
    if (pixels != rightMargin()) setViewportMargins(0, 0, pixels, 0);
}

void ScheduleTextEdit::keyPressEvent(QKeyEvent* event)
{
    if (event->matches(QKeySequence::Undo)) {
        if (ownUndo && document()->isUndoAvailable())
            undo();
        else
            emit undoAsked();
        return;
    }
    if (event->matches(QKeySequence::Redo) ||
        (event->key() == Qt::Key_Y && event->modifiers() == Qt::ControlModifier)) {
        if (ownUndo && document()->isRedoAvailable())
            redo();
        else
            emit redoAsked();
        return;
    }
    if (event->key() == Qt::Key_Escape) {
        emit leaveAsked();
        return;
    }
    QPlainTextEdit::keyPressEvent(event);
}

ScheduleText::ScheduleText(QWidget* parent) : QWidget(parent)
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(14, 8, 14, 8);
    layout->setSpacing(5);
    auto* head = new QHBoxLayout;
    head->setSpacing(8);
    head->addWidget(makeLabel(u"Schedule text"_s, "title", this));
    m_state = makeLabel({}, "secondary", this, true);
    m_state->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_state->setWordWrap(true);
    head->addWidget(m_state, 1);
    m_takeCanvas = new QPushButton(u"Use the canvas's order"_s, this);
    m_takeCanvas->setObjectName(u"flat"_s);
    m_takeCanvas->setToolTip(u"Discards the typed text, which could not be read."_s);
    m_takeCanvas->setAutoDefault(false);
    m_takeCanvas->hide();
    m_state->setMinimumHeight(m_takeCanvas->sizeHint().height()); // otherwise the text jumps when it appears
    head->addWidget(m_takeCanvas);
    layout->addLayout(head);
    m_field = new ScheduleTextEdit(this);
    m_field->setObjectName(u"scheduleText"_s);
    m_field->setAccessibleName(u"Schedule text"_s);
    m_field->setAccessibleDescription(u"One line per rank, ops separated by commas: stage, kind, microbatch"_s);
    m_field->setToolTip(u"One line per rank, as in PyTorch's schedule CSV: 2F0 is stage 2, forward, microbatch 0."_s);
    m_field->setMinimumHeight(40);
    layout->addWidget(m_field, 1);
    m_bubble = new QLabel(m_field);
    m_bubble->setObjectName(u"scheduleTextFault"_s);
    m_bubble->setTextFormat(Qt::PlainText);
    m_bubble->setWordWrap(true);
    m_bubble->setAttribute(Qt::WA_TransparentForMouseEvents);
    m_bubble->hide();
    m_pause.setSingleShot(true);
    m_pause.setInterval(readPause);
    m_sessionEnd.setSingleShot(true);
    m_sessionEnd.setInterval(sessionPause);
    connect(&m_pause, &QTimer::timeout, this, &ScheduleText::read);
    connect(&m_sessionEnd, &QTimer::timeout, this, [this] { ++m_session; });
    connect(m_field, &QPlainTextEdit::textChanged, this, &ScheduleText::textChanged);
    connect(m_field, &QPlainTextEdit::cursorPositionChanged, this, &ScheduleText::tellCaret);
    connect(m_field, &ScheduleTextEdit::undoAsked, this, &ScheduleText::undoAsked);
    connect(m_field, &ScheduleTextEdit::redoAsked, this, &ScheduleText::redoAsked);
    connect(m_field, &ScheduleTextEdit::leaveAsked, this, &ScheduleText::leaveAsked);
    for (QScrollBar* bar : {m_field->horizontalScrollBar(), m_field->verticalScrollBar()})
        connect(bar, &QScrollBar::valueChanged, this, &ScheduleText::placeBubble);
    connect(m_takeCanvas, &QPushButton::clicked, this, [this] {
        m_reading.drop();
        m_waiting = m_typed = m_unreadable = false;
        m_pause.stop();
        m_read.reset();
        if (m_schedule) setSchedule(m_schedule, m_validation);
        m_field->setFocus();
    });
}

void ScheduleText::clear()
{
    m_reading.drop();
    m_waiting = m_typed = m_unreadable = false;
    m_pause.stop();
    m_schedule.reset();
    m_read.reset();
    m_validation = {};
    m_writing = true;
    m_field->clear();
    m_writing = false;
    showFault({}, {}, {});
}

void ScheduleText::setSchedule(std::shared_ptr<const Schedule> schedule, const Validation& validation)
{
    m_schedule = std::move(schedule);
    m_validation = validation;
    if (m_typed) { // kept; a readable text is applied at once, an unreadable one is not lost
        if (m_unreadable) showFault(m_fault, m_faultText, {});
        return;
    }
    if (!m_read || *m_read != *m_schedule) { // otherwise the typed text stays as it is: blanks, blank cells
        m_read.reset();
        auto lines = textLinesOf(*m_schedule);
        if (!lines) {
            showFault({}, QString::fromStdString(lines.error().message), QString::fromStdString(lines.error().remedy));
            return;
        }
        replaceLines(*lines);
    }
    if (m_validation.valid()) {
        showFault({}, {}, {});
    } else {
        const Fault& fault = m_validation.faults.front();
        showFault(spanAt({fault.rank, fault.position}), QString::fromStdString(fault.message),
                  QString::fromStdString(fault.remedy));
    }
}

// Replaces only the part of a line that differs, so that the caret stays and little is laid out again.
void ScheduleText::replaceLines(const QStringList& lines)
{
    m_writing = true;
    QTextDocument* document = m_field->document();
    if (document->blockCount() != lines.size()) {
        const int scroll = m_field->horizontalScrollBar()->value();
        m_field->setPlainText(lines.join(u'\n'));
        m_field->horizontalScrollBar()->setValue(scroll);
    } else {
        QTextBlock block = document->begin();
        for (const QString& wanted : lines) {
            const QString there = block.text();
            if (there != wanted) {
                qsizetype same = 0;
                const qsizetype least = std::min(there.size(), wanted.size());
                while (same < least && there[same] == wanted[same]) ++same;
                qsizetype tail = 0;
                while (tail < least - same && there[there.size() - 1 - tail] == wanted[wanted.size() - 1 - tail])
                    ++tail;
                QTextCursor cursor(block);
                cursor.setPosition(block.position() + static_cast<int>(same));
                cursor.setPosition(block.position() + static_cast<int>(there.size() - tail), QTextCursor::KeepAnchor);
                cursor.insertText(wanted.mid(same, wanted.size() - tail - same));
            }
            block = block.next();
        }
    }
    document->clearUndoRedoStacks();
    m_writing = false;
}

void ScheduleText::textChanged()
{
    if (m_writing) return;
    m_reading.drop(); // a pending answer is for an older text
    m_typed = true;
    m_waiting = true;
    m_field->ownUndo = true;
    m_pause.start();
    m_sessionEnd.start();
}

void ScheduleText::read()
{
    if (!m_schedule) return;
    m_reading.start([text = m_field->toPlainText(), frame = m_schedule] { return readTypedOrder(text, *frame); },
                    [this](const TypedOrder& order) { take(order); });
}

void ScheduleText::take(const TypedOrder& order)
{
    m_waiting = false;
    if (!order.schedule) {
        m_unreadable = true;
        showFault(order.fault, QString::fromStdString(order.schedule.error().message),
                  QString::fromStdString(order.schedule.error().remedy));
        return;
    }
    m_typed = false;
    m_unreadable = false;
    m_field->ownUndo = false;
    m_field->document()->clearUndoRedoStacks();
    m_read = *order.schedule; // lines are normalised when the canvas changes them
    if (*order.schedule == *m_schedule)
        setSchedule(m_schedule, m_validation);
    else
        emit typed(*order.schedule, sessionBase + m_session);
}

TextSpan ScheduleText::spanAt(OpPosition at) const
{
    if (!at.valid()) return {};
    const int line = at.rank + settingsLines(m_field->document()->firstBlock().text());
    const QTextBlock block = m_field->document()->findBlockByNumber(line);
    if (!block.isValid()) return {};
    TextSpan span = spanOfOp(block.text(), at.position);
    if (span.valid()) span.line = line;
    return span;
}

void ScheduleText::select(OpPosition at)
{
    if (m_typed) return;
    const TextSpan span = spanAt(at);
    if (!span.valid()) return;
    QTextCursor cursor = m_field->textCursor();
    const QTextBlock block = m_field->document()->findBlockByNumber(span.line);
    const int column = cursor.positionInBlock();
    if (cursor.block() == block && column >= span.column && column <= span.column + span.length) {
        mark();
        return;
    }
    if (m_field->hasFocus()) return;
    m_writing = true;
    cursor.setPosition(block.position() + span.column);
    m_field->setTextCursor(cursor);
    m_writing = false;
    mark();
}

void ScheduleText::tellCaret()
{
    mark();
    if (m_writing || m_typed || !m_schedule) return;
    const QTextCursor cursor = m_field->textCursor();
    const int rank = cursor.blockNumber() - settingsLines(m_field->document()->firstBlock().text());
    if (rank < 0) return;
    const int position = opAtColumn(cursor.block().text(), cursor.positionInBlock());
    if (position >= 0) emit caretMoved({rank, position});
}

void ScheduleText::showFault(const TextSpan& where, const QString& message, const QString& remedy)
{
    m_fault = where;
    m_faultText = message;
    QString text = message;
    if (m_unreadable) {
        text = u"not applied: %1"_s.arg(message);
    } else if (message.isEmpty()) {
        text = m_schedule ? u"in sync with the canvas"_s : QString();
    }
    const bool beside = where.valid() && !message.isEmpty(); // the bubble says it where it is
    if (beside)
        text = m_unreadable ? u"not applied: see the mark in line %1"_s.arg(where.line + 1)
                            : u"the order has a fault: see the mark in line %1"_s.arg(where.line + 1);
    if (!remedy.isEmpty()) text += u"; "_s + remedy;
    text = sentence(text);
    m_state->setText(text);
    m_state->setToolTip(text);
    setRole(m_state, message.isEmpty() ? "secondary" : "worse");
    m_takeCanvas->setVisible(m_unreadable);
    static const QRegularExpression place(u"^line \\d+(?:, cell \\d+)?(?: \\([^)]*\\))?: "_s);
    m_bubble->setText(QString(message).remove(place)); // it is already there
    mark();
}

void ScheduleText::mark()
{
    QList<QTextEdit::ExtraSelection> marks;
    auto select = [&](const TextSpan& span) {
        QTextEdit::ExtraSelection mark;
        const QTextBlock block = m_field->document()->findBlockByNumber(span.line);
        if (!block.isValid()) return mark;
        mark.cursor = QTextCursor(block);
        const int end = std::min(span.column + span.length, static_cast<int>(block.text().size()));
        mark.cursor.setPosition(block.position() + std::min(span.column, end));
        mark.cursor.setPosition(block.position() + end, QTextCursor::KeepAnchor);
        return mark;
    };
    const QTextCursor caret = m_field->textCursor();
    const int position = opAtColumn(caret.block().text(), caret.positionInBlock());
    if (position >= 0 && m_schedule) {
        TextSpan span = spanOfOp(caret.block().text(), position);
        span.line = caret.blockNumber();
        auto mark = select(span);
        QColor tint = m_theme->accent;
        tint.setAlphaF(m_theme->dark ? 0.35F : 0.18F);
        mark.format.setBackground(tint);
        marks << mark;
    }
    if (m_fault.valid()) {
        auto mark = select(m_fault);
        mark.format.setUnderlineStyle(QTextCharFormat::WaveUnderline);
        mark.format.setUnderlineColor(m_theme->critical);
        mark.format.setToolTip(m_faultText);
        marks << mark;
    }
    m_field->setExtraSelections(marks);
    placeBubble();
}

void ScheduleText::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    placeBubble();
}

// The reason at the right of its line, in its own space.
void ScheduleText::placeBubble()
{
    const QTextBlock block =
        m_fault.valid() && !m_faultText.isEmpty() ? m_field->document()->findBlockByNumber(m_fault.line) : QTextBlock();
    if (!block.isValid()) {
        m_bubble->hide();
        m_field->setRightMargin(0);
        return;
    }
    m_bubble->setStyleSheet(
        u"QLabel { background: %1; color: %2; border-radius: 4px; padding: 2px 7px; font-weight: 600; }"_s.arg(
            m_theme->critical.name(), (m_theme->dark ? m_theme->canvas : m_theme->onAccent).name()));
    m_bubble->ensurePolished();
    int width = 0;
    for (const int fifths : {2, 3, 4}) { // wider where it would be cut
        width = std::min(std::max(60, m_field->width() * fifths / 5),
                         QFontMetrics(m_bubble->font()).horizontalAdvance(m_bubble->text()) + 24);
        if (m_bubble->heightForWidth(width) <= m_field->height() - 4) break;
    }
    if (m_field->rightMargin() != width + 6) {
        m_field->setRightMargin(width + 6);
        if (m_field->hasFocus()) m_field->ensureCursorVisible(); // it does not cover typed text
    }
    const QRect at = m_field->cursorRect(QTextCursor(block)).translated(m_field->viewport()->pos());
    const int height = std::min(std::max(m_bubble->heightForWidth(width), at.height()), m_field->height() - 4);
    const QRect room = m_field->viewport()->geometry();
    m_bubble->setVisible(at.bottom() > room.top() && at.top() < room.bottom());
    m_bubble->setGeometry(
        m_field->width() - width - 3,
        std::clamp(at.top() + (at.height() - height) / 2, 2, std::max(2, m_field->height() - height - 2)), width,
        height);
    m_bubble->raise();
}

void ScheduleText::setTheme(const Theme& theme)
{
    m_theme = &theme;
    mark();
}

QString ScheduleText::message() const { return m_faultText; }

} // namespace stagewright
