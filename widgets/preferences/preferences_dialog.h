// PreferencesDialog: every preference with its meaning. Changes apply at once in every window; the text scale applies at the next start,
// which the dialog offers. Not modal.
#pragma once

#include <QDialog>

#include "widgets/preferences/preferences.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace stagewright {

class PreferencesDialog : public QDialog {
    Q_OBJECT
public:
    explicit PreferencesDialog(QWidget* parent = nullptr);

signals:
    void restartAsked();

private:
    void fill();  // the fields from the store
    void apply(); // the store from the fields
    QComboBox* m_theme;
    QComboBox* m_hatch;
    QComboBox* m_scale;
    QCheckBox* m_motion;
    QComboBox* m_unit;
    QComboBox* m_keys;
    QLineEdit* m_folder;
    QSpinBox* m_recent;
    QCheckBox* m_session;
    QCheckBox* m_autosave;
    QSpinBox* m_seconds;
    QLabel* m_later;
    QPushButton* m_restart;
    bool m_filling = false;
};

} // namespace stagewright
