// PreferencesDialog: every preference with its meaning, and a page of hosts. Changes apply at once in every window; the
// text scale applies at the next start, which the dialog offers. Not modal.
#pragma once

#include <QDialog>

#include "widgets/preferences/preferences.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;
class QTabWidget;

namespace stagewright {

class HostsPage;

class PreferencesDialog : public QDialog {
    Q_OBJECT
public:
    explicit PreferencesDialog(QWidget* parent = nullptr);

    void setProgram(const QString& program); // stagewright, which knows the hosts
    void showHosts();
    HostsPage* hosts() { return m_hosts; }

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
    QTabWidget* m_pages;
    HostsPage* m_hosts;
    bool m_filling = false;
    bool m_listed = false; // the hosts
};

} // namespace stagewright
