#include "widgets/lessons/lesson_shelf.h"

#include <algorithm>
#include <utility>

#include <QCoreApplication>
#include <QEnterEvent>
#include <QFrame>
#include <QHBoxLayout>
#include <QImageReader>
#include <QKeyEvent>
#include <QLabel>
#include <QPainterPath>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "widgets/lessons/page_reading.h"
#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr int cardWidth = 220, cardHeight = 132, cardGap = 14, margin = 20;

} // namespace

QString markWords(lessons::Mark mark)
{
    switch (mark) {
    case lessons::Mark::None: return u"not started"_s;
    case lessons::Mark::Guessed: return u"started"_s;
    case lessons::Mark::Shown: return u"solution shown"_s;
    case lessons::Mark::Done: return u"done"_s;
    case lessons::Mark::Proved: return u"done and verified by a run on this computer"_s;
    }
    return {};
}

// An empty ring, half a disc, a disc, a disc with a bolt.
void paintMark(QPainter& painter, QPointF centre, lessons::Mark mark, const Theme& theme)
{
    constexpr double radius = 6.5;
    const QRectF disc(centre.x() - radius, centre.y() - radius, 2 * radius, 2 * radius);
    const QColor colour = mark >= lessons::Mark::Done   ? theme.better
                          : mark == lessons::Mark::None ? theme.faint
                                                        : theme.accent;
    painter.setPen(QPen(colour, 1.5));
    painter.setBrush(Qt::NoBrush);
    painter.drawEllipse(disc);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    if (mark == lessons::Mark::Guessed || mark == lessons::Mark::Shown) painter.drawPie(disc, 90 * 16, 180 * 16);
    if (mark < lessons::Mark::Done) return;
    painter.drawEllipse(disc);
    if (mark != lessons::Mark::Proved) return;
    const double x = centre.x(), y = centre.y();
    painter.setBrush(theme.dark ? theme.canvas : theme.onAccent);
    painter.drawPolygon(QPolygonF{{x + 1.4, y - 4.6},
                                  {x - 3.2, y + 0.9},
                                  {x - 0.3, y + 0.9},
                                  {x - 1.4, y + 4.6},
                                  {x + 3.2, y - 0.9},
                                  {x + 0.3, y - 0.9}});
}

LessonCard::LessonCard(const ShelfEntry& entry, QWidget* parent) : QAbstractButton(parent)
{
    setFixedSize(cardWidth, cardHeight);
    setFocusPolicy(Qt::StrongFocus);
    setCursor(Qt::PointingHandCursor);
    setAttribute(Qt::WA_Hover);
    setEntry(entry);
}

void LessonCard::setEntry(const ShelfEntry& entry)
{
    m_entry = entry;
    const lessons::Lesson& lesson = *entry.lesson;
    const QString number = lesson.number > 0 ? u"%1. "_s.arg(lesson.number) : QString();
    setAccessibleName(u"%1%2, %3"_s.arg(number, qs(lesson.title), markWords(entry.mark)));
    setToolTip(lesson.minutes > 0 ? u"%1 minutes, %2"_s.arg(lesson.minutes).arg(markWords(entry.mark))
                                  : markWords(entry.mark));
    update();
}

void LessonCard::setChosen(bool chosen)
{
    if (std::exchange(m_chosen, chosen) != chosen) update();
}

void LessonCard::setRecommended(bool next)
{
    m_recommended = next;
    update();
}

void LessonCard::setTheme(const Theme& theme)
{
    m_theme = &theme;
    update();
}

void LessonCard::enterEvent(QEnterEvent* event)
{
    QAbstractButton::enterEvent(event);
    emit pointed();
}

void LessonCard::focusInEvent(QFocusEvent* event)
{
    QAbstractButton::focusInEvent(event);
    emit pointed();
}

void LessonCard::keyPressEvent(QKeyEvent* event)
{
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
        click();
        return;
    }
    // the shelf moves to the neighbour, past the scroll area
    if (event->key() >= Qt::Key_Home && event->key() <= Qt::Key_Down) {
        QWidget* shelf = parentWidget();
        while (shelf != nullptr && qobject_cast<LessonShelf*>(shelf) == nullptr) shelf = shelf->parentWidget();
        if (shelf != nullptr) QCoreApplication::sendEvent(shelf, event);
        return;
    }
    QAbstractButton::keyPressEvent(event);
}

void LessonCard::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    // The keyboard's card has a thick outline, the chosen one a tinted ground, the recommended one the word.
    const double line = hasFocus() ? 2 : 1;
    const QRectF frame = QRectF(rect()).adjusted(line / 2, line / 2, -line / 2, -line / 2);
    painter.setPen(QPen(hasFocus() || m_chosen ? m_theme->accent : m_theme->separator, line));
    QColor fill = m_theme->panel;
    if (m_chosen) {
        const float share = m_theme->dark ? 0.2F : 0.08F;
        fill = QColor::fromRgbF(fill.redF() + (m_theme->accent.redF() - fill.redF()) * share,
                                fill.greenF() + (m_theme->accent.greenF() - fill.greenF()) * share,
                                fill.blueF() + (m_theme->accent.blueF() - fill.blueF()) * share);
    }
    if (underMouse() || isDown()) fill = m_theme->dark ? fill.lighter(118) : fill.darker(103);
    painter.setBrush(fill);
    painter.drawRoundedRect(frame, 8, 8);
    painter.setFont(fontOf(FontRole::Strong));
    painter.setPen(m_theme->text);
    const lessons::Lesson& lesson = *m_entry.lesson;
    const QString title = (lesson.number > 0 ? QString::number(lesson.number) + u"  "_s : QString()) + qs(lesson.title);
    // Two lines, cut at words; a third takes its height from the picture.
    const QFontMetricsF metrics(painter.font());
    const double wide = width() - 24;
    QStringList lines{QString()};
    for (const QString& word : title.split(u' ')) {
        const QString longer = lines.last().isEmpty() ? word : lines.last() + u' ' + word;
        if (lines.size() == 3 || metrics.horizontalAdvance(longer) <= wide)
            lines.last() = longer;
        else
            lines << word;
    }
    const double third = lines.size() > 2 ? 16 : 0;
    for (qsizetype i = 0; i < lines.size(); ++i)
        painter.drawText(QPointF(12, 86 - third + 16 * static_cast<double>(i)),
                         metrics.elidedText(lines[i], Qt::ElideRight, wide));
    paintLessonPicture(painter, QRectF(12, 12, width() - 24, 56 - third), m_entry.picture, *m_theme);
    painter.setFont(fontOf(FontRole::Small));
    painter.setPen(m_theme->secondary);
    if (lesson.minutes > 0) painter.drawText(QPointF(12, height() - 11), u"%1 min"_s.arg(lesson.minutes));
    if (m_recommended) {
        const QString next = u"Next"_s;
        const double left =
            12 + (lesson.minutes > 0
                      ? QFontMetricsF(painter.font()).horizontalAdvance(u"%1 min"_s.arg(lesson.minutes)) + 10
                      : 0);
        const QRectF chip(left, height() - 24, QFontMetricsF(painter.font()).horizontalAdvance(next) + 14, 17);
        painter.setPen(Qt::NoPen);
        painter.setBrush(m_theme->accent);
        painter.drawRoundedRect(chip, 8.5, 8.5);
        painter.setPen(m_theme->onAccent);
        painter.drawText(chip, Qt::AlignCenter, next);
    }
    paintMark(painter, QPointF(width() - 19, height() - 15), m_entry.mark, *m_theme);
}

LessonShelf::LessonShelf(QWidget* parent) : QWidget(parent)
{
    setObjectName(u"canvas"_s);
    setAttribute(Qt::WA_StyledBackground);
    setAccessibleName(u"Lessons"_s);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    m_scroll = new QScrollArea(this);
    m_scroll->setWidgetResizable(true);
    m_scroll->setFocusPolicy(Qt::NoFocus);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_board = new QWidget(m_scroll);
    m_board->setObjectName(u"shelf"_s);
    m_scroll->setWidget(m_board);
    layout->addWidget(m_scroll, 1);

    m_detail = new QWidget(this);
    m_detail->setObjectName(u"shelfDetail"_s);
    m_detail->setAttribute(Qt::WA_StyledBackground);
    m_detail->setFixedWidth(380);
    auto* column = new QVBoxLayout(m_detail);
    column->setContentsMargins(24, 24, 24, 20);
    column->setSpacing(10);
    m_question = makeLabel({}, "question", m_detail);
    m_question->setWordWrap(true);
    m_needs = makeLabel({}, "secondary", m_detail);
    m_needs->setWordWrap(true);
    m_state = makeLabel({}, "secondary", m_detail);
    m_state->setWordWrap(true);
    m_figure = new QLabel(m_detail);
    m_figure->setAccessibleName(u"The figure you saved"_s);
    column->addWidget(m_question);
    column->addWidget(m_needs);
    column->addWidget(m_state);
    column->addWidget(m_figure);
    auto* buttons = new QHBoxLayout;
    m_start = new QPushButton(u"Start"_s, m_detail);
    m_start->setObjectName(u"primary"_s);
    m_again = new QPushButton(u"Start over"_s, m_detail);
    m_again->setToolTip(u"Deletes your answers in this lesson"_s);
    buttons->addWidget(m_start);
    buttons->addWidget(m_again);
    buttons->addStretch(1);
    column->addSpacing(4);
    column->addLayout(buttons);
    column->addSpacing(14);
    auto* rule = new QFrame(m_detail);
    rule->setObjectName(u"rule"_s);
    column->addWidget(rule);
    column->addSpacing(4);
    auto* own = makeLabel(
        u"Write your own: <code>stagewright lesson --new NAME</code> writes a template, and "
        "<code>stagewright lesson --check FILE</code> checks it. Open the file here, or drop it onto the window."_s,
        "secondary", m_detail, true);
    own->setTextFormat(Qt::RichText);
    own->setWordWrap(true);
    column->addWidget(own);
    auto* open = new QPushButton(u"Open a lesson file…"_s, m_detail);
    open->setObjectName(u"link"_s);
    column->addWidget(open, 0, Qt::AlignLeft);
    m_faults = makeLabel({}, "worse", m_detail, true);
    m_faults->setWordWrap(true);
    column->addWidget(m_faults);
    column->addStretch(1);
    layout->addWidget(m_detail);
    connect(m_start, &QPushButton::clicked, this, [this] {
        if (!m_chosen.isEmpty()) emit startAsked(m_chosen);
    });
    connect(m_again, &QPushButton::clicked, this, [this] {
        if (!m_chosen.isEmpty()) emit startOverAsked(m_chosen);
    });
    connect(open, &QPushButton::clicked, this, &LessonShelf::openFileAsked);
}

void LessonShelf::setFaults(const QStringList& faults)
{
    m_faults->setText(faults.join(u'\n'));
    m_faults->setVisible(!faults.isEmpty());
}

void LessonShelf::setEntries(std::vector<ShelfEntry> entries)
{
    const bool same =
        entries.size() == m_entries.size() &&
        std::equal(entries.begin(), entries.end(), m_entries.begin(), [](const ShelfEntry& a, const ShelfEntry& b) {
            return a.lesson->id == b.lesson->id && a.row == b.row;
        });
    m_entries = std::move(entries);
    if (!same)
        rebuild();
    else
        for (std::size_t i = 0; i < m_cards.size(); ++i) m_cards[i]->setEntry(m_entries[i]);
    const LessonCard* next = recommended();
    for (LessonCard* card : m_cards) card->setRecommended(card == next);
    if (chosen().isEmpty() || std::none_of(m_entries.begin(), m_entries.end(),
                                           [&](const ShelfEntry& e) { return qs(e.lesson->id) == m_chosen; }))
        describe(next != nullptr ? next : m_cards.empty() ? nullptr : m_cards.front());
    else
        for (const LessonCard* card : m_cards)
            if (qs(card->entry().lesson->id) == m_chosen) describe(card);
    if (!same && isVisible()) choose(m_chosen);
}

// The first unfinished lesson with finished predecessors; else the first unfinished one.
const LessonCard* LessonShelf::recommended() const
{
    auto done = [&](const std::string& id) {
        return std::any_of(m_entries.begin(), m_entries.end(),
                           [&](const ShelfEntry& e) { return e.lesson->id == id && e.mark >= lessons::Mark::Done; });
    };
    const LessonCard* open = nullptr;
    for (const LessonCard* card : m_cards) {
        if (card->entry().mark >= lessons::Mark::Done || !card->entry().place.isEmpty()) continue;
        if (open == nullptr) open = card;
        const auto& after = card->entry().lesson->after;
        if (std::all_of(after.begin(), after.end(), done)) return card;
    }
    return open;
}

void LessonShelf::rebuild()
{
    qDeleteAll(m_cards);
    qDeleteAll(m_titles);
    m_cards.clear();
    m_titles.clear();
    QString row;
    for (const ShelfEntry& entry : m_entries) {
        if (entry.row != row || m_titles.empty()) {
            row = entry.row;
            QLabel* title = makeLabel(row, "title", m_board);
            title->setProperty("firstCard", static_cast<int>(m_cards.size()));
            m_titles.push_back(title);
        }
        auto* card = new LessonCard(entry, m_board);
        card->setTheme(*m_theme);
        connect(card, &LessonCard::pointed, this, [this, card] { describe(card); });
        connect(card, &QAbstractButton::clicked, this, [this, card] { emit startAsked(qs(card->entry().lesson->id)); });
        m_cards.push_back(card);
    }
    for (QLabel* title : m_titles) title->show();
    for (LessonCard* card : m_cards) card->show();
    layOut();
}

void LessonShelf::layOut()
{
    const int room = m_scroll->viewport()->width() - 2 * margin;
    const int columns = std::max(1, (room + cardGap) / (cardWidth + cardGap));
    int y = margin;
    for (std::size_t t = 0; t < m_titles.size(); ++t) {
        const auto first = static_cast<std::size_t>(m_titles[t]->property("firstCard").toInt());
        const std::size_t last = t + 1 < m_titles.size()
                                     ? static_cast<std::size_t>(m_titles[t + 1]->property("firstCard").toInt())
                                     : m_cards.size();
        m_titles[t]->setGeometry(margin, y, std::max(100, room), 20);
        y += 26;
        for (std::size_t i = first; i < last; ++i) {
            const int at = static_cast<int>(i - first);
            m_cards[i]->move(margin + at % columns * (cardWidth + cardGap), y + at / columns * (cardHeight + cardGap));
        }
        const int lines = (static_cast<int>(last - first) + columns - 1) / columns;
        y += lines * (cardHeight + cardGap) + 12;
    }
    m_board->setMinimumHeight(y + margin - cardGap);
}

void LessonShelf::describe(const LessonCard* card)
{
    if (card == nullptr) {
        m_chosen.clear();
        m_question->setText(u"There are no lessons here."_s);
        for (QWidget* widget :
             {static_cast<QWidget*>(m_needs), static_cast<QWidget*>(m_state), static_cast<QWidget*>(m_figure),
              static_cast<QWidget*>(m_start), static_cast<QWidget*>(m_again)})
            widget->hide();
        return;
    }
    const ShelfEntry& entry = card->entry();
    const lessons::Lesson& lesson = *entry.lesson;
    m_chosen = qs(lesson.id);
    for (LessonCard* one : m_cards) one->setChosen(one == card);
    m_question->setText(qs(lesson.title));
    m_needs->setText(entry.after.isEmpty() ? QString() : u"Recommended first: %1"_s.arg(entry.after));
    m_needs->setVisible(!entry.after.isEmpty());
    QString state = lesson.minutes > 0 ? u"%1 minutes, %2."_s.arg(lesson.minutes).arg(markWords(entry.mark))
                                       : u"Now: %1."_s.arg(markWords(entry.mark));
    if (!entry.place.isEmpty()) state += u'\n' + entry.place;
    m_state->setText(state);
    m_state->show();
    QPixmap figure;
    if (!entry.figure.isEmpty() &&
        QImageReader::supportedImageFormats().contains(entry.figure.section(u'.', -1).toLower().toLatin1()))
        figure.load(entry.figure);
    m_figure->setVisible(!figure.isNull());
    if (!figure.isNull()) m_figure->setPixmap(figure.scaledToWidth(332, Qt::SmoothTransformation));
    m_start->setVisible(true);
    m_start->setText(entry.mark == lessons::Mark::None   ? u"Start"_s
                     : entry.mark >= lessons::Mark::Done ? u"Open again"_s
                                                         : u"Continue"_s);
    m_again->setVisible(entry.mark != lessons::Mark::None);
    for (LessonCard* other : m_cards) other->update();
}

void LessonShelf::choose(const QString& id)
{
    for (LessonCard* card : m_cards)
        if (qs(card->entry().lesson->id) == id) {
            describe(card);
            card->setFocus();
            m_scroll->ensureWidgetVisible(card);
        }
}

QString LessonShelf::chosen() const { return m_chosen; }

QString LessonShelf::statusText() const
{
    int all = 0, done = 0, proved = 0;
    for (const ShelfEntry& entry : m_entries) {
        if (!entry.place.isEmpty()) continue;
        ++all;
        if (entry.mark >= lessons::Mark::Done) ++done;
        if (entry.mark == lessons::Mark::Proved) ++proved;
    }
    return u"%1 of %2 done, %3 verified on this computer"_s.arg(done).arg(all).arg(proved);
}

void LessonShelf::setTheme(const Theme& theme)
{
    m_theme = &theme;
    for (LessonCard* card : m_cards) card->setTheme(theme);
}

void LessonShelf::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    m_detail->setFixedWidth(width() < 1100 ? 300 : 380);
    layOut();
}

void LessonShelf::showEvent(QShowEvent* event)
{
    QWidget::showEvent(event);
    layOut();
    if (!m_chosen.isEmpty()) choose(m_chosen);
}

// Arrows go to the nearest card in their direction.
void LessonShelf::keyPressEvent(QKeyEvent* event)
{
    if (event->key() == Qt::Key_Escape) {
        emit leaveAsked();
        return;
    }
    const auto at =
        std::find_if(m_cards.begin(), m_cards.end(), [](const LessonCard* card) { return card->hasFocus(); });
    if (at == m_cards.end() || event->key() < Qt::Key_Home || event->key() > Qt::Key_Down) {
        QWidget::keyPressEvent(event);
        return;
    }
    LessonCard* next = nullptr;
    if (event->key() == Qt::Key_Home) next = m_cards.front();
    if (event->key() == Qt::Key_End) next = m_cards.back();
    if (event->key() == Qt::Key_Left && at != m_cards.begin()) next = *(at - 1);
    if (event->key() == Qt::Key_Right && at + 1 != m_cards.end()) next = *(at + 1);
    if (event->key() == Qt::Key_Up || event->key() == Qt::Key_Down) {
        const QPoint from = (*at)->pos();
        int best = 0;
        for (LessonCard* card : m_cards) {
            const int dy = event->key() == Qt::Key_Down ? card->y() - from.y() : from.y() - card->y();
            if (dy <= 0) continue;
            const int distance = dy * 4 + std::abs(card->x() - from.x());
            if (next == nullptr || distance < best) {
                next = card;
                best = distance;
            }
        }
    }
    if (next == nullptr) return;
    next->setFocus();
    m_scroll->ensureWidgetVisible(next);
}

} // namespace stagewright
