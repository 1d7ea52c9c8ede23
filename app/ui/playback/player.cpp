#include "app/ui/playback/player.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stagewright {
namespace {

constexpr double unitMilliseconds = 500;
constexpr double longestTick = 100; // ms; after a longer pause the cursor continues where it was

} // namespace

Player::Player(QObject* parent) : QObject(parent)
{
    m_timer.setInterval(16);
    m_timer.setTimerType(Qt::PreciseTimer);
    connect(&m_timer, &QTimer::timeout, this, [this] {
        const double passed = std::min(longestTick, static_cast<double>(m_clock.nsecsElapsed()) / 1e6);
        m_clock.restart();
        advance(passed);
    });
}

void Player::setBeats(std::shared_ptr<const Beats> beats)
{
    m_beats = std::move(beats);
    if (!m_beats || m_beats->beats.empty()) {
        end();
        m_beats.reset();
        return;
    }
    if (!m_active) return;
    m_cursor = std::min(m_cursor, m_beats->end);
    m_exact = static_cast<double>(m_cursor);
    m_beat = m_beats->at(m_cursor);
    emit stateChanged();
    emit beatChanged();
}

void Player::begin()
{
    if (m_active || !m_beats) return;
    m_active = true;
    m_cursor = m_beats->beats.front().time;
    m_exact = static_cast<double>(m_cursor);
    m_beat = 0;
    emit stateChanged();
    emit beatChanged();
}

void Player::end()
{
    m_timer.stop();
    if (!m_active) return;
    m_active = false;
    m_beat = -1;
    emit stateChanged();
}

void Player::play(bool on)
{
    if (on && m_beats) {
        begin();
        if (m_cursor >= m_beats->end) seek(m_beats->beats.front().time);
        m_clock.start();
        m_timer.start();
    } else {
        m_timer.stop();
    }
    emit stateChanged();
}

void Player::nextBeat()
{
    if (!m_beats) return;
    if (!m_active) {
        begin();
        return;
    }
    const int next = m_beat + 1;
    moveTo(next < static_cast<int>(m_beats->beats.size()) ? m_beats->beats[static_cast<std::size_t>(next)].time
                                                          : m_beats->end);
}

void Player::previousBeat()
{
    if (!m_beats || !m_active || m_beat < 0) return;
    const Nanos begin = m_beats->beats[static_cast<std::size_t>(m_beat)].time;
    moveTo(m_cursor > begin || m_beat == 0 ? begin : m_beats->beats[static_cast<std::size_t>(m_beat - 1)].time);
}

void Player::nextInteresting()
{
    if (!m_beats) return;
    if (!m_active) {
        begin();
        return;
    }
    for (std::size_t i = static_cast<std::size_t>(m_beat + 1); i < m_beats->beats.size(); ++i)
        if (m_beats->beats[i].interesting) {
            moveTo(m_beats->beats[i].time);
            return;
        }
    moveTo(m_beats->end);
}

void Player::seek(Nanos time)
{
    if (m_active && m_beats) moveTo(std::clamp<Nanos>(time, 0, m_beats->end));
}

void Player::setSpeed(int speed)
{
    m_speed = std::clamp(speed, 1, 4);
    emit stateChanged();
}

void Player::setReducedMotion(bool on)
{
    m_reduced = on;
    emit stateChanged();
}

double Player::pace() const
{
    double factor = static_cast<double>(1 << (m_speed - 1));
    if (m_beat >= 0) {
        const Beat& beat = m_beats->beats[static_cast<std::size_t>(m_beat)];
        if (beat.isFirst)
            factor /= 3;
        else if (beat.repeats)
            factor *= 8;
    }
    return static_cast<double>(m_beats->unit) / unitMilliseconds * factor;
}

void Player::advance(double milliseconds)
{
    if (!m_active || !m_beats) return;
    // A tick may pass beats of different paces.
    while (milliseconds > 0 && m_exact < static_cast<double>(m_beats->end)) {
        const double rate = pace();
        const auto next = static_cast<std::size_t>(m_beat + 1);
        const double until = next < m_beats->beats.size() ? static_cast<double>(m_beats->beats[next].time)
                                                          : static_cast<double>(m_beats->end);
        const double need = std::max(0.0, until - m_exact) / rate;
        if (need > milliseconds) {
            m_exact += milliseconds * rate;
            break;
        }
        milliseconds -= need;
        const double exact = until;
        moveTo(static_cast<Nanos>(std::llround(until)));
        m_exact = exact;
    }
    if (m_exact >= static_cast<double>(m_beats->end)) {
        moveTo(m_beats->end);
        m_timer.stop();
        emit stateChanged();
        return;
    }
    if (m_reduced) return; // the cursor stays at its beat until the next one
    const double exact = m_exact;
    moveTo(static_cast<Nanos>(std::llround(exact)));
    m_exact = exact;
}

void Player::moveTo(Nanos time)
{
    m_exact = static_cast<double>(time);
    if (time == m_cursor) return;
    const Nanos from = std::exchange(m_cursor, time);
    const int beat = m_beats->at(time);
    emit cursorMoved(from, time);
    if (beat != std::exchange(m_beat, beat)) emit beatChanged();
}

} // namespace stagewright
