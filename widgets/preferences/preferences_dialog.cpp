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
    setObjectName(QStringLiteral("preferences"));
    setWindowTitle(tr("Preferences"));
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(22, 12, 22, 16);
    outer->setSpacing(8);
    m_pages = new QTabWidget(this);
    m_pages->setUsesScrollButtons(false); // there is room for both
    m_pages->setDocumentMode(true);
    m_pages->setAccessibleName(tr("Pages"));
    outer->addWidget(m_pages, 1);
    auto* general = new QWidget;
    m_pages->addTab(general, tr("General"));
    m_hosts = new HostsPage;
    m_pages->addTab(m_hosts, tr("Hosts"));
    auto* layout = new QVBoxLayout(general);
    layout->setContentsMargins(0, 12, 0, 0);
    layout->setSpacing(8);

    QGridLayout* looks = section(layout, tr("Appearance"), general);
    m_theme = new QComboBox(this);
    m_theme->addItems({tr("Follow system"), tr("Light"), tr("Dark"), tr("High contrast")});
    addField(
        looks, tr("Theme"), m_theme,
        tr("Colours of the window. High contrast: text at 7:1 or more, fills and lines at 3:1 or more, on black."));
    m_hatch = new QComboBox(this);
    m_hatch->addItems({tr("With high contrast"), tr("Always"), tr("Never")});
    addField(looks, tr("Hatched kinds"), m_hatch,
             tr("Backward, weight gradient and communication differ by hatch as well as colour, as in pictures for "
                "grey print."));
    m_scale = new QComboBox(this);
    for (const int scale : scales) m_scale->addItem(tr("%1 %").arg(scale), scale);
    addField(looks, tr("Text and sizes"), m_scale,
             tr("Scales everything in the window, rows and pictures included; 100 % is 12 px text."));
    auto* later = new QHBoxLayout;
    m_later = makeLabel(tr("Takes effect at the next start."), "secondary", this);
    m_later->setWordWrap(true);
    m_restart = new QPushButton(tr("Restart now"), this);
    m_restart->setObjectName(QStringLiteral("link"));
    m_restart->setToolTip(tr("Closes the windows and reopens them as they are"));
    later->addWidget(m_later);
    later->addWidget(m_restart);
    later->addStretch(1);
    looks->addLayout(later, looks->rowCount(), 1, 1, 2);
    m_unit = new QComboBox(this);
    m_unit->addItems({tr("Automatic"), tr("Seconds"), tr("Milliseconds"), tr("Microseconds"), tr("Nanoseconds")});
    addField(looks, tr("Time unit"), m_unit,
             tr("Unit of durations and the ruler. Automatic: one to three digits before the decimal point. Simulated "
                "unit costs stay in units: 1 is the forward of one microbatch over a rank's share of the model."));
    m_motion = new QCheckBox(tr("Reduced motion"), this);
    addCheck(looks, m_motion, tr("No animations: no moving bars, no fading menus; playback goes in steps"));

    QGridLayout* work = section(layout, tr("Behaviour"), general);
    m_keys = new QComboBox(this);
    m_keys->addItems({tr("Perfetto"), tr("Nsight Systems"), tr("Tracy")});
    addField(work, tr("Keys as in"), m_keys, tr("The keys of the timeline; press ? for the current shortcuts"));
    m_folder = new QLineEdit(this);
    m_folder->setPlaceholderText(tr("next to the last opened file"));
    m_folder->setMinimumWidth(QFontMetrics(m_folder->font()).horizontalAdvance(m_folder->placeholderText()) + 28);
    auto* browse = new QPushButton(tr("Choose…"), this);
    browse->setToolTip(tr("Choose the folder in which file dialogs start"));
    addField(work, tr("Folder"), m_folder, tr("Where file dialogs start; empty: next to the last opened file"), browse);
    m_recent = new QSpinBox(this);
    m_recent->setRange(0, 50);
    addField(work, tr("Recent files"), m_recent, tr("Length of the list of recent files; 0 keeps none"));
    m_seconds = new QSpinBox(this);
    m_seconds->setRange(1, 600);
    m_seconds->setSuffix(tr(" s"));
    m_autosave = new QCheckBox(tr("Autosave edited schedules"), this);
    addField(work, tr("Autosave after"), m_seconds, tr("Time after an edit until it is saved for recovery"));
    addCheck(work, m_autosave, tr("After a crash, offers to recover edited schedules that were not saved"));
    m_session = new QCheckBox(tr("Reopen last session"), this);
    addCheck(work, m_session,
             tr("Files, the run shown, its view, selection and mode; also after a crash. Files named on the command "
                "line open instead."));

    layout->addStretch(1);
    auto* rule = new QFrame(this);
    rule->setObjectName(QStringLiteral("rule"));
    outer->addWidget(rule);
    auto* buttons = new QHBoxLayout;
    auto* reset = new QPushButton(tr("Reset all"), this);
    reset->setToolTip(tr("Resets every preference to its default"));
    auto* close = new QPushButton(tr("Close"), this);
    close->setObjectName(QStringLiteral("primary"));
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
            QFileDialog::getExistingDirectory(this, tr("Folder in which file dialogs start"), m_folder->text());
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
    if (m_scale->findData(p.textScale) < 0) m_scale->addItem(tr("%1 %").arg(p.textScale), p.textScale);
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
