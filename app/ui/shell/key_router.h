// KeyRouter: keys that mean the same wherever the focus is in a window. The timeline's characters (W A S D , . [ ] …)
// reach it unless a text field has the focus; lists don't search by typed letters (the search field does) and keep
// their arrow keys. Return presses the focused button.
#pragma once

#include <QObject>

class QKeyEvent;
class QWidget;

namespace stagewright {

class Workspace;

class KeyRouter : public QObject {
    Q_OBJECT
public:
    explicit KeyRouter(Workspace& workspace);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override; // of the application

private:
    bool press(QWidget* focus, const QKeyEvent& key);
    // a character of its key map while it is visible
    bool isForTimeline(const QWidget* focus, const QKeyEvent& key) const;
    Workspace& m_workspace;
    bool m_sending = false;
};

// A field that takes letters: line edit, text edit, spin box, editable combo box.
bool isTypedInto(const QWidget* widget);

} // namespace stagewright
