#include "app/ui/playback/playback_bar.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QIcon>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QPushButton>

#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

enum class Sign {
    Previous,
    Play,
    Stop,
    Next,
    Moment,
    Close,
};

QIcon signOf(Sign sign, const QColor& colour)
{
    QPixmap picture(48, 48);
    picture.setDevicePixelRatio(3);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    auto triangle = [&](double x, double width) {
        painter.drawPolygon(QPolygonF{QPointF(x, 3), QPointF(x + width, 8), QPointF(x, 13)});
    };
    switch (sign) {
    case Sign::Previous:
        painter.drawRect(QRectF(3, 3, 2, 10));
        triangle(13, -8);
        break;
    case Sign::Play: triangle(4, 9); break;
    case Sign::Stop:
        painter.drawRect(QRectF(4, 3, 3, 10));
        painter.drawRect(QRectF(9, 3, 3, 10));
        break;
    case Sign::Next:
        triangle(3, 8);
        painter.drawRect(QRectF(11, 3, 2, 10));
        break;
    case Sign::Moment:
        triangle(1, 6);
        triangle(7, 6);
        painter.drawRect(QRectF(13, 3, 2, 10));
        break;
    case Sign::Close:
        painter.setPen(QPen(colour, 1.6, Qt::SolidLine, Qt::RoundCap));
        painter.drawLine(QPointF(4, 4), QPointF(12, 12));
        painter.drawLine(QPointF(12, 4), QPointF(4, 12));
        break;
    }
    return QIcon(picture);
}

} // namespace

PlaybackBar::PlaybackBar(Player* player, QWidget* parent) : QFrame(parent), m_player(player)
{
    setObjectName(u"playbackBar"_s);
    setAttribute(Qt::WA_StyledBackground);
    setAccessibleName(u"Playback"_s);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(8, 4, 12, 4);
    layout->setSpacing(2);
    auto button = [&](const QString& text, const QString& name, const QString& tip) {
        auto* made = new QPushButton(text, this);
        made->setObjectName(u"flat"_s);
        made->setAccessibleName(name);
        made->setToolTip(tip);
        made->setFixedHeight(26);
        layout->addWidget(made);
        return made;
    };
    m_previous =
        button({}, u"Previous beat"_s, u"Previous beat: ops that start together are one beat  (Shift+Space)"_s);
    connect(m_previous, &QPushButton::clicked, player, &Player::previousBeat);
    m_play = button({}, u"Play or stop"_s,
                    u"Plays at half a second per unit; slower when something happens for the first time, faster "
                    "where a pattern repeats  (P)"_s);
    connect(m_play, &QPushButton::clicked, player, [player] { player->play(!player->playing()); });
    m_next = button({}, u"Next beat"_s, u"Next beat: ops that start together are one beat  (Space)"_s);
    connect(m_next, &QPushButton::clicked, player, &Player::nextBeat);
    m_moment = button({}, u"Next interesting beat"_s,
                      u"The next first occurrence, gap of half an op, peak or change of pattern  (N)"_s);
    connect(m_moment, &QPushButton::clicked, player, &Player::nextInteresting);
    layout->addSpacing(8);
    m_words = makeLabel({}, "value", this);
    m_words->setTextFormat(Qt::PlainText);
    m_words->setAccessibleName(u"What happens"_s);
    m_words->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_words->installEventFilter(this);
    layout->addWidget(m_words, 1);
    layout->addSpacing(8);
    m_clock = makeLabel({}, "secondary", this);
    m_clock->setAccessibleName(u"Moment"_s);
    m_clock->setToolTip(u"Time since the start of the step, and the beat"_s);
    layout->addWidget(m_clock);
    m_speed = button({}, u"Pace"_s, u"Multiplies the pace of half a second per unit  (1 to 4)"_s);
    auto* menu = new QMenu(m_speed);
    for (int speed = 1; speed <= 4; ++speed)
        menu->addAction(u"%1 × the pace"_s.arg(1 << (speed - 1)), this, [player, speed] { player->setSpeed(speed); });
    menu->addSeparator();
    auto* reduced = menu->addAction(u"Reduced motion: jump from beat to beat"_s);
    reduced->setCheckable(true);
    connect(menu, &QMenu::aboutToShow, this, [reduced, player] { reduced->setChecked(player->reducedMotion()); });
    connect(reduced, &QAction::triggered, this, &PlaybackBar::reducedMotionChosen);
    m_speed->setMenu(menu);
    m_speed->setStyleSheet(u"QPushButton::menu-indicator { image: none; width: 0; }"_s);
    m_close = button({}, u"End playback"_s, u"Shows the whole step again  (Esc)"_s);
    connect(m_close, &QPushButton::clicked, player, &Player::end);
    connect(player, &Player::stateChanged, this, &PlaybackBar::refresh);
    connect(player, &Player::cursorMoved, this, &PlaybackBar::refresh);
    hide();
}

void PlaybackBar::setTheme(const Theme& theme)
{
    m_theme = &theme;
    m_previous->setIcon(signOf(Sign::Previous, theme.secondary));
    m_next->setIcon(signOf(Sign::Next, theme.secondary));
    m_moment->setIcon(signOf(Sign::Moment, theme.secondary));
    m_close->setIcon(signOf(Sign::Close, theme.secondary));
    refresh();
}

void PlaybackBar::setUnits(const Units& units)
{
    m_units = units;
    refresh();
}

void PlaybackBar::setWords(const QString& words)
{
    m_text = words;
    m_words->setToolTip(words);
    elide();
}

QString PlaybackBar::words() const { return m_text; }

// A sentence that does not fit is in the tooltip in full.
void PlaybackBar::elide()
{
    m_words->setText(m_words->fontMetrics().elidedText(m_text, Qt::ElideRight, m_words->width()));
}

// The sentence gets the space left by the clock and the pace.
bool PlaybackBar::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_words && event->type() == QEvent::Resize) elide();
    return QFrame::eventFilter(watched, event);
}

void PlaybackBar::refresh()
{
    setVisible(m_player->active());
    m_play->setIcon(signOf(m_player->playing() ? Sign::Stop : Sign::Play, m_theme->accent));
    m_speed->setText(u"%1×"_s.arg(1 << (m_player->speed() - 1)));
    if (!m_player->active() || !m_player->beats()) return;
    m_clock->setText(u"%1   ·   beat %2 of %3"_s.arg(durationText(m_player->cursor(), m_units))
                         .arg(m_player->beat() + 1)
                         .arg(m_player->beats()->beats.size()));
    elide();
}

} // namespace stagewright
