// PlaybackBar: the line under the canvas during playback: buttons, caption, clock. It shows what it is given and sends
// requests to the player. GUI thread only.
#pragma once

#include <QFrame>

#include "app/ui/playback/player.h"

class QLabel;
class QPushButton;

namespace stagewright {

class PlaybackBar : public QFrame {
    Q_OBJECT
public:
    PlaybackBar(Player* player, QWidget* parent = nullptr);
    void setWords(const QString& words); // of the beat; two sentences at most
    QString words() const;
    void setUnits(const Units& units);
    void setTheme(const Theme& theme);
    QSize minimumSizeHint() const override { return {200, 34}; }

signals:
    void reducedMotionChosen(bool on);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void refresh();
    void elide();

    Player* m_player;
    QPushButton *m_previous, *m_play, *m_next, *m_moment, *m_speed, *m_close;
    const Theme* m_theme = &Theme::light();
    QLabel *m_words, *m_clock;
    QString m_text;
    Units m_units;
};

} // namespace stagewright
