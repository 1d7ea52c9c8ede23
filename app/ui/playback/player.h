// Player: a cursor that moves over a timeline, beat by beat or at a pace. It knows beats and time, no view. GUI thread
// only.
//
// Pace: half a second per unit (Beats::unit) at speed 1; a third of that while something happens for the first time;
// eight times that while a pattern that was seen twice continues. With reduced motion the cursor jumps from beat to
// beat in the same time.
#pragma once

#include <memory>

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>

#include "app/ui/playback/beats.h"

namespace stagewright {

class Player : public QObject {
    Q_OBJECT
public:
    explicit Player(QObject* parent = nullptr);

    // A new picture keeps the cursor if it is still inside. Null or without beats: playback ends.
    void setBeats(std::shared_ptr<const Beats> beats);
    const std::shared_ptr<const Beats>& beats() const { return m_beats; }

    bool active() const { return m_active; } // a cursor is shown
    bool playing() const { return m_timer.isActive(); }
    Nanos cursor() const { return m_cursor; } // axis time
    int beat() const { return m_beat; }       // −1: before the first
    int speed() const { return m_speed; }
    bool reducedMotion() const { return m_reduced; }

    void begin();       // at the first beat; does nothing without beats
    void end();         // no cursor
    void play(bool on); // from the first beat if there is no cursor or it is at the end
    void nextBeat();
    void previousBeat();
    void nextInteresting();
    void seek(Nanos time);
    void setSpeed(int speed); // 1 … 4: once, twice, four and eight times the pace
    void setReducedMotion(bool on);
    void advance(double milliseconds); // called by the timer

signals:
    void cursorMoved(stagewright::Nanos from, stagewright::Nanos to);
    void beatChanged();
    void stateChanged(); // active, playing, speed, reduced motion or beats

private:
    void moveTo(Nanos time);
    double pace() const; // ns per millisecond

    std::shared_ptr<const Beats> m_beats;
    bool m_active = false;
    bool m_reduced = false;
    Nanos m_cursor = 0;
    double m_exact = 0; // the cursor between nanoseconds
    int m_beat = -1;
    int m_speed = 1;
    QTimer m_timer;
    QElapsedTimer m_clock;
};

} // namespace stagewright
