// KeyRouter: keys that mean the same wherever the focus is in a window. The timeline's characters (W A S D , . [ ] …) reach it
// unless a text is typed into; lists don't take letters as a search (a field finds in them), and keep their arrows. Return
// presses the button that has the focus.
#pragma once

#include <QObject>

class QKeyEvent;
class QWidget;

namespace stagewright {

class MainWindow;

class KeyRouter : public QObject {
    Q_OBJECT
public:
    explicit KeyRouter(MainWindow& window);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override; // of the application

private:
    bool press(QWidget* focus, const QKeyEvent& key);
    bool isForTimeline(const QWidget* focus, const QKeyEvent& key) const; // a character of its key map, and it is shown
    MainWindow& m_window;
    bool m_sending = false;
};

// A field that takes letters: one line, many, a number, a box that is typed into.
bool isTypedInto(const QWidget* widget);

} // namespace stagewright
