// CommandPalette: a field and a list over the window; a few letters find an action, a run, a schedule, a file or an op.
// Arrows and Page keys select, Enter runs, Esc closes. Unavailable entries say why.
#pragma once

#include <QDialog>

#include "widgets/palette/palette_model.h"
#include "widgets/theme.h"

class QLabel;
class QLineEdit;
class QListView;

namespace stagewright {

class CommandPalette : public QDialog {
    Q_OBJECT
public:
    CommandPalette(const Theme& theme, QWidget* parent);
    PaletteModel* model() { return &m_model; }
    QLineEdit* field() { return m_field; }
    QListView* list() { return m_list; }
    void openOver(QWidget* window); // at the top of it, in the middle

signals:
    void performed(const QString& id);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void changed();
    void perform();
    PaletteModel m_model;
    QLineEdit* m_field;
    QListView* m_list;
    QLabel* m_hint;
};

} // namespace stagewright
