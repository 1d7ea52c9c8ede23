#include "widgets/preferences/preferences_dialog.h"

#include <utility>

#include <QCheckBox>
#include <QComboBox>
#include <QFileDialog>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTabWidget>

#include "widgets/hosts/hosts_page.h"
#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr int scales[] = {80, 90, 100, 110, 125, 150, 175, 200};

QGridLayout* section(QVBoxLayout* into, const QString& title, QWidget* parent)
{
    if (into->count() > 0) into->addSpacing(10);
    into->addWidget(makeLabel(title, "title", parent));
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(14);
    grid->setVerticalSpacing(7);
    grid->setColumnMinimumWidth(0, 110); // the sections line up
    grid->setColumnStretch(1, 1);
    into->addLayout(grid);
    return grid;
}

void addField(QGridLayout* grid, const QString& title, QWidget* field, const QString& tooltip,
              QWidget* beside = nullptr)
{
    const int row = grid->rowCount();
    grid->addWidget(makeFieldLabel(title, field, tooltip, grid->parentWidget()), row, 0);
    grid->addWidget(field, row, 1, 1, beside != nullptr ? 1 : 2);
    if (beside != nullptr) grid->addWidget(beside, row, 2);
}

void addCheck(QGridLayout* grid, QCheckBox* box, const QString& tooltip)
{
    box->setToolTip(tooltip);
    box->setAccessibleDescription(tooltip);
    grid->addWidget(box, grid->rowCount(), 1, 1, 2);
}

} // namespace

PreferencesDialog::PreferencesDialog(QWidget* parent) : QDialog(parent)
{
    setObjectName(u"preferences"_s);
    setWindowTitle(u"Preferences"_s);
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(22, 12, 22, 16);
    outer->setSpacing(8);
    m_pages = new QTabWidget(this);
    m_pages->setUsesScrollButtons(false); // there is room for both
    m_pages->setDocumentMode(true);
    m_pages->setAccessibleName(u"Pages"_s);
    outer->addWidget(m_pages, 1);
    auto* general = new QWidget;
    m_pages->addTab(general, u"General"_s);
    m_hosts = new HostsPage;
    m_pages->addTab(m_hosts, u"Hosts"_s);
    auto* layout = new QVBoxLayout(general);
    layout->setContentsMargins(0, 12, 0, 0);
    layout->setSpacing(8);

    QGridLayout* looks = section(layout, u"Appearance"_s, general);
    m_theme = new QComboBox(this);
    m_theme->addItems({u"Follow the system"_s, u"Light"_s, u"Dark"_s, u"High contrast"_s});
    addField(looks, u"Theme"_s, m_theme,
             u"Colours of the window. High contrast: text at 7:1 or more, fills and lines at 3:1 or more, on black."_s);
    m_hatch = new QComboBox(this);
    m_hatch->addItems({u"With high contrast"_s, u"Always"_s, u"Never"_s});
    addField(looks, u"Hatched kinds"_s, m_hatch,
             u"Backward, weight gradient and communication differ by hatch as well as colour, as in pictures for "
             "grey print."_s);
    m_scale = new QComboBox(this);
    for (const int scale : scales) m_scale->addItem(u"%1 %"_s.arg(scale), scale);
    addField(looks, u"Text and sizes"_s, m_scale,
             u"Scales everything in the window, rows and pictures included; 100 % is 12 px text."_s);
    auto* later = new QHBoxLayout;
    m_later = makeLabel(u"Takes effect at the next start."_s, "secondary", this);
    m_later->setWordWrap(true);
    m_restart = new QPushButton(u"Restart now"_s, this);
    m_restart->setObjectName(u"link"_s);
    m_restart->setToolTip(u"Closes the windows and reopens them as they are"_s);
    later->addWidget(m_later);
    later->addWidget(m_restart);
    later->addStretch(1);
    looks->addLayout(later, looks->rowCount(), 1, 1, 2);
    m_unit = new QComboBox(this);
    m_unit->addItems({u"Automatic"_s, u"Seconds"_s, u"Milliseconds"_s, u"Microseconds"_s, u"Nanoseconds"_s});
    addField(looks, u"Time unit"_s, m_unit,
             u"Unit of durations and the ruler. Automatic: one to three digits before the decimal point. Simulated "
             "unit costs stay in units: 1 is the forward of one microbatch over a rank's share of the model."_s);
    m_motion = new QCheckBox(u"Reduced motion"_s, this);
    addCheck(looks, m_motion, u"No animations: no moving bars, no fading menus; playback goes in steps"_s);

    QGridLayout* work = section(layout, u"Behaviour"_s, general);
    m_keys = new QComboBox(this);
    m_keys->addItems({u"Perfetto"_s, u"Nsight Systems"_s, u"Tracy"_s});
    addField(work, u"Keys as in"_s, m_keys, u"The keys of the timeline; press ? for the current shortcuts"_s);
    m_folder = new QLineEdit(this);
    m_folder->setPlaceholderText(u"next to the last opened file"_s);
    m_folder->setMinimumWidth(QFontMetrics(m_folder->font()).horizontalAdvance(m_folder->placeholderText()) + 28);
    auto* browse = new QPushButton(u"Choose…"_s, this);
    browse->setToolTip(u"Choose the folder in which file dialogs start"_s);
    addField(work, u"Folder"_s, m_folder, u"Where file dialogs start; empty: next to the last opened file"_s, browse);
    m_recent = new QSpinBox(this);
    m_recent->setRange(0, 50);
    addField(work, u"Recent files"_s, m_recent, u"Length of the list of recent files; 0 keeps none"_s);
    m_seconds = new QSpinBox(this);
    m_seconds->setRange(1, 600);
    m_seconds->setSuffix(u" s"_s);
    m_autosave = new QCheckBox(u"Autosave edited schedules"_s, this);
    addField(work, u"Autosave after"_s, m_seconds, u"Time after an edit until it is saved for recovery"_s);
    addCheck(work, m_autosave, u"After a crash, offers to recover edited schedules that were not saved"_s);
    m_session = new QCheckBox(u"Reopen last session"_s, this);
    addCheck(work, m_session,
             u"Files, the run shown, its view, selection and mode; also after a crash. Files named on the command "
             "line open instead."_s);

    layout->addStretch(1);
    auto* rule = new QFrame(this);
    rule->setObjectName(u"rule"_s);
    outer->addWidget(rule);
    auto* buttons = new QHBoxLayout;
    auto* reset = new QPushButton(u"Reset all"_s, this);
    reset->setToolTip(u"Resets every preference to its default"_s);
    auto* close = new QPushButton(u"Close"_s, this);
    close->setObjectName(u"primary"_s);
    close->setDefault(true);
    buttons->addWidget(reset);
    buttons->addStretch(1);
    buttons->addWidget(close);
    outer->addLayout(buttons);
    connect(m_pages, &QTabWidget::currentChanged, this,
            [this, reset] { reset->setVisible(m_pages->currentWidget() != m_hosts); });

    fill();
    for (QComboBox* box : {m_theme, m_hatch, m_scale, m_unit, m_keys})
        connect(box, &QComboBox::currentIndexChanged, this, &PreferencesDialog::apply);
    for (QCheckBox* box : {m_motion, m_autosave, m_session})
        connect(box, &QCheckBox::toggled, this, &PreferencesDialog::apply);
    for (QSpinBox* box : {m_recent, m_seconds}) connect(box, &QSpinBox::valueChanged, this, &PreferencesDialog::apply);
    connect(m_folder, &QLineEdit::editingFinished, this, &PreferencesDialog::apply);
    connect(browse, &QPushButton::clicked, this, [this] {
        const QString folder =
            QFileDialog::getExistingDirectory(this, u"Folder in which file dialogs start"_s, m_folder->text());
        if (folder.isEmpty()) return;
        m_folder->setText(folder);
        apply();
    });
    connect(reset, &QPushButton::clicked, this, [] { PreferenceStore::instance().set(Preferences{}); });
    connect(close, &QPushButton::clicked, this, &QDialog::close);
    connect(m_restart, &QPushButton::clicked, this, &PreferencesDialog::restartAsked);
    connect(&PreferenceStore::instance(), &PreferenceStore::changed, this, &PreferencesDialog::fill);
}

void PreferencesDialog::setProgram(const QString& program)
{
    connect(m_pages, &QTabWidget::currentChanged, this, [this, program] { // asked once it is looked at
        if (m_pages->currentWidget() == m_hosts && !std::exchange(m_listed, true)) m_hosts->setProgram(program);
    });
}

void PreferencesDialog::showHosts() { m_pages->setCurrentWidget(m_hosts); }

void PreferencesDialog::fill()
{
    m_filling = true;
    const Preferences& p = PreferenceStore::instance().value();
    m_theme->setCurrentIndex(static_cast<int>(p.theme));
    m_hatch->setCurrentIndex(static_cast<int>(p.hatch));
    if (m_scale->findData(p.textScale) < 0) m_scale->addItem(u"%1 %"_s.arg(p.textScale), p.textScale);
    m_scale->setCurrentIndex(m_scale->findData(p.textScale));
    m_unit->setCurrentIndex(static_cast<int>(p.timeUnit));
    m_motion->setChecked(p.reducedMotion);
    m_keys->setCurrentIndex(static_cast<int>(p.keys));
    m_folder->setText(p.folder);
    m_recent->setValue(p.recentFiles);
    m_autosave->setChecked(p.autosave);
    m_seconds->setValue(p.autosaveSeconds);
    m_seconds->setEnabled(p.autosave);
    m_session->setChecked(p.restoreSession);
    const bool waits = p.textScale != textScaleInForce();
    m_later->setVisible(waits);
    m_restart->setVisible(waits);
    m_filling = false;
}

void PreferencesDialog::apply()
{
    if (m_filling) return;
    Preferences p;
    p.theme = static_cast<ThemeChoice>(m_theme->currentIndex());
    p.hatch = static_cast<HatchChoice>(m_hatch->currentIndex());
    p.textScale = m_scale->currentData().toInt();
    p.reducedMotion = m_motion->isChecked();
    p.timeUnit = static_cast<TimeUnit>(m_unit->currentIndex());
    p.keys = static_cast<KeyMapName>(m_keys->currentIndex());
    p.folder = m_folder->text().trimmed();
    p.recentFiles = m_recent->value();
    p.autosave = m_autosave->isChecked();
    p.autosaveSeconds = m_seconds->value();
    p.restoreSession = m_session->isChecked();
    PreferenceStore::instance().set(p);
}

} // namespace stagewright
